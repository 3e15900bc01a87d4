"""Running services: one for all tests that leave it well, and one for each that does not."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.system.catalog import make_catalog
from tests.system.effects import own_effects
from tests.system.service_process import ServiceProcess

MakeService = Callable[..., ServiceProcess]

_HERE = Path(__file__).parent
_SHARED = pytest.StashKey[ServiceProcess]()


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the shipped tools and those of `tests/tool_projects`."""
    return make_catalog(tmp_path_factory.mktemp("catalog"))


@pytest.fixture(scope="session")
def service(catalog: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Generator[ServiceProcess]:
    """The service that is shared: leave it as well as you found it."""
    service = pytestconfig.stash[_SHARED] = ServiceProcess(tmp_path_factory.mktemp("shared"), catalog)
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """It ends with the last test of this folder: until that of all, its rounds and those of its Temporal would take a processor's time."""
    if _SHARED in item.config.stash and (nextitem is None or _HERE not in nextitem.path.parents):
        item.config.stash[_SHARED].end()


@pytest.fixture
def make_service(catalog: Path, tmp_path: Path) -> Generator[MakeService]:
    """A service of the test's own, not started yet; takes settings by their names without the prefix."""
    with ExitStack() as stack:

        def make(**settings: str) -> ServiceProcess:
            service = ServiceProcess(tmp_path / "service", catalog, **settings)
            stack.callback(service.wait_until_nothing_is_left)
            stack.callback(service.end)
            return service

        yield make


@pytest.fixture
def effects(catalog: Path) -> Path:
    """Where the diligent tools leave a line for each effect; what a test and they both look at lies beside it."""
    return own_effects(catalog)
