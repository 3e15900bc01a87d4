"""Running services: one shared by the tests that leave it as it was, and one of its own for each other test."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.scheduling import WITH_THE_SHARED_SERVICE, file_of
from tests.system.catalog import make_catalog
from tests.system.effects import own_effects
from tests.system.service_process import ServiceProcess

MakeService = Callable[..., ServiceProcess]

_SHARED = pytest.StashKey[ServiceProcess]()
_CALLBACKS = {"CALLBACK_ALLOW": "127.0.0.1", "SECRET_CALLBACK": "s3cret"}


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory, environments: Path) -> Path:
    """A data directory with the shipped tools and those of `tests/tool_projects`."""
    return make_catalog(tmp_path_factory.mktemp("catalog"), environments)


@pytest.fixture(scope="module")
def service(catalog: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> ServiceProcess:
    """The shared service. A test must leave it as it was."""
    if (service := pytestconfig.stash.get(_SHARED, None)) is None:
        service = pytestconfig.stash[_SHARED] = ServiceProcess(tmp_path_factory.mktemp("shared"), catalog, **_CALLBACKS)
    if not service.is_running:
        service.start()
    return service


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stops the shared service after the last test that uses it, because its rounds and its Temporal server use a processor."""
    service = item.config.stash.get(_SHARED, None)
    if service is not None and service.is_running and (nextitem is None or file_of(nextitem.nodeid) not in WITH_THE_SHARED_SERVICE):
        service.end()
        service.wait_until_nothing_is_left()


@pytest.fixture
def make_service(catalog: Path, tmp_path: Path) -> Generator[MakeService]:
    """Makes services that are not started; settings are named without the prefix."""
    with ExitStack() as stack:

        def make(**settings: str) -> ServiceProcess:
            service = ServiceProcess(tmp_path / "service", catalog, **settings)
            stack.callback(service.wait_until_nothing_is_left)
            stack.callback(service.end)
            return service

        yield make


@pytest.fixture
def effects(catalog: Path) -> Path:
    """The file where diligent tools leave a line for each effect; tests and tools both see its folder."""
    return own_effects(catalog)
