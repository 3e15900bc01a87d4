"""A real service for the clients that need one."""

from collections.abc import Generator

import pytest

from tests.system.service_process import ROOT, ServiceProcess


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    """With the shipped catalog; leave it as well as you found it."""
    service = ServiceProcess(tmp_path_factory.mktemp("clients"), ROOT / "data")
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()
