"""A real service for the clients that need one."""

import subprocess
from collections.abc import Generator

import pytest
import pytest_asyncio
from temporalio.client import Client

from tests.conftest import impatient
from tests.system.service_process import ROOT, ServiceProcess


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    """A service with the shipped catalog. A test must leave it as it was."""
    service = ServiceProcess(tmp_path_factory.mktemp("clients"), ROOT / "data")
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


@pytest_asyncio.fixture
async def silent_temporal(own_temporal: tuple[str, subprocess.Popen[bytes]]) -> Client:
    """A client of a server that has died."""
    address, server = own_temporal
    client = await impatient(address)
    server.kill()
    server.wait()
    return client
