"""Fixtures of several kinds of tests."""

import gc
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import pytest_asyncio
import structlog
from execnet import XSpec
from hypothesis import HealthCheck, settings
from temporalio.client import Client
from temporalio.service import RetryConfig
from temporalio.worker import UnsandboxedWorkflowRunner
from xdist.remote import Producer

from engine.network.ports import free_port
from engine.store.database import Database, migrate
from tests.docker.engines import remove_images_of
from tests.machine import lacking
from tests.postgres import PostgresServer, postgres_binaries, postgres_server
from tests.programs import Program
from tests.scheduling import Files, collected, file_of
from tests.system.loaded import ADDRESS, loaded
from toolagent_service.plugin import service_plugin
from workers.temporal.connection import connect
from workers.temporal.dev_server import read_config, server_command, temporal_binary

# Where PYTHONDONTWRITEBYTECODE is set, each process of each run would rewrite the assertions of all test modules, for a dozen seconds.
sys.dont_write_bytecode = False

# What is collected stays to the end. Walking it again and again takes a third of the time that collecting takes.
gc.disable()

# As the service does it: the values of variables take seconds to print, while the event loop stands still.
_PLAIN = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _PLAIN])

# How long an input takes to be made says how busy the machine is; that is no fault of the code.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

_TEMPORAL = pytest.StashKey[tuple[str, ExitStack]]()
_LONG = ("system", "making", "docker", "tools", "bench", "scripts", "sandbox", "workers", "workflows", "runtimes")
"""Folders whose tests start programs, the longest first."""

_ON_BOTH = tuple(
    f"tests/{place}"
    for place in (
        "store/",
        "registry/test_bad_files.py::test_characters_that_cannot_be_stored",
        "registry/test_catalog.py",
        "registry/test_departures.py",
        "registry/test_registry.py",
        "registry/test_rollback.py",
        "registry/test_round_trip.py",
        "registry/test_versions.py",
        "im/test_conversations.py",
        "making/test_registration.py",
        "making/test_repairs.py",
        "upkeep/test_lease.py",
        "upkeep/test_repairs.py",
    )
)
"""Tests of what the two kinds of database could do differently: statements, transactions, texts, clocks. The others see SQLite alone."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database_url" in metafunc.fixturenames:
        kinds = ("sqlite", "postgresql") if metafunc.definition.nodeid.startswith(_ON_BOTH) else ("sqlite",)
        metafunc.parametrize("database_url", kinds, indirect=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Files:
    return Files(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[XSpec]) -> None:
    """All processes are copies of one that has imported the tests; their services are copies of another one that has loaded the program."""
    stack = ExitStack()
    config.add_cleanup(stack.close)
    program = stack.enter_context(collected([file_of(place) for place in config.args], config.invocation_params.dir))
    address = stack.enter_context(loaded())
    for spec in specs:
        spec.python = program
        spec.env[ADDRESS] = address


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files come first, so that the processes end together (`make test` has xdist keep this order)."""
    items.sort(key=lambda item: next((place for place, folder in enumerate(_LONG) if f"tests/{folder}/" in item.nodeid), len(_LONG)))


@pytest.fixture(scope="session", autouse=True)
def own_states(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Files that services keep for their user, such as the key of their containers, are in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("states")))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_image_left(own_states: None, tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Removes images of services whose state directories were the tests' from the Docker engine."""
    yield
    remove_images_of(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session", autouse=True)
def no_socket_folder_left(own_states: None, tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Removes socket folders of sandboxes whose state directories were the tests': each start of a service reads all of them."""
    yield
    for folder in Path(tempfile.gettempdir()).glob("tool-agent-*"):
        with suppress(OSError, ValueError, KeyError):
            if Path(json.loads((folder / "of.json").read_text())["state"]).is_relative_to(tmp_path_factory.getbasetemp()):
                shutil.rmtree(folder)


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """The environments of tools, shared by all processes, because building one takes up to eight seconds of processor time."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(pytestconfig, "workerinput") else base) / "environments"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with empty tables: copying it is faster than migrating, which takes a third of a second."""
    folder = tmp_path_factory.mktemp("database")
    migrate(f"sqlite+aiosqlite:///{folder / 'empty.db'}", folder / "migration.lock")
    return folder / "empty.db"


@pytest.fixture
def sqlite_url(empty_database: Path, tmp_path: Path) -> str:
    """A migrated SQLite database for the test."""
    shutil.copyfile(empty_database, tmp_path / "test.db")
    return f"sqlite+aiosqlite:///{tmp_path / 'test.db'}"


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder of the programs; without them the test is skipped, or fails where everything is required."""
    if (folder := postgres_binaries()) is None:
        lacking("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return folder


@pytest.fixture(scope="session")
def postgres(postgres_programs: Path) -> Generator[PostgresServer]:
    """One server for the whole session. A test must leave it as it was."""
    with postgres_server(postgres_programs) as server:
        yield server


@pytest.fixture
def own_postgres(postgres_programs: Path) -> Generator[PostgresServer]:
    """A server that the test may stop, kill or halt."""
    with postgres_server(postgres_programs) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_postgres(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a database with empty tables."""
    postgres.execute("CREATE DATABASE migrated")
    migrate(postgres.url("migrated"), tmp_path_factory.mktemp("postgres") / "migration.lock")
    return "migrated"


@pytest.fixture
def postgres_url(postgres: PostgresServer, migrated_postgres: str) -> Generator[str]:
    """A migrated PostgreSQL database, emptied after the test, because a copy for each would take a third of a second."""
    yield postgres.url(migrated_postgres)
    postgres.empty(migrated_postgres)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database for the test; `_ON_BOTH` names the tests that run on both kinds."""
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncGenerator[Database]:
    database = Database(database_url)
    yield database
    await database.close()


ROOT = Path(__file__).parent.parent


@contextmanager
def temporal_server(folder: Path) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """A real Temporal server, started as by `make up`: its address and its process."""
    port = free_port()
    # What was written outlives a kill all the same; only a power cut would take it.
    pragmas = {"journal_mode": "wal", "synchronous": "off"}
    config = read_config(ROOT / "temporal-dev.yaml").model_copy(update={"sqlite_pragmas": pragmas})
    command = server_command(temporal_binary(), config, folder, port, free_port())
    with (folder / "server.log").open("wb") as log, Program(command, stdout=log, stderr=log) as server:
        yield f"127.0.0.1:{port}", server
        server.terminate()


@pytest.fixture(scope="module")
def temporal_address(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One server for consecutive files; it ends with the last of them, because an idle server uses a processor."""
    if (found := pytestconfig.stash.get(_TEMPORAL, None)) is None:
        stack = ExitStack()
        address, _ = stack.enter_context(temporal_server(tmp_path_factory.mktemp("temporal")))
        found = pytestconfig.stash[_TEMPORAL] = address, stack
    return found[0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if _TEMPORAL not in item.config.stash or (nextitem is not None and nextitem.path == item.path):
        return
    if nextitem is None or "temporal_address" not in getattr(nextitem, "fixturenames", ()):
        _, stack = item.config.stash[_TEMPORAL]
        del item.config.stash[_TEMPORAL]
        stack.close()


@pytest.fixture
def own_temporal(tmp_path: Path) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """A server that the test may kill."""
    with temporal_server(tmp_path) as server:
        yield server


async def impatient(address: str) -> Client:
    """A connection that gives a request up after half a second; the SDK itself retries for ten."""
    await connect(address, "default", sandbox=False, patience_s=120)
    retries = RetryConfig(max_interval_millis=100, max_elapsed_time_millis=500)
    return await Client.connect(address, plugins=[service_plugin(UnsandboxedWorkflowRunner())], retry_config=retries)


@pytest.fixture(scope="module")
def own_garbage() -> Generator[None]:
    """Collects the garbage of workflows at the end of their file: a warning about it would fail the test of another file."""
    yield
    gc.collect()


@pytest_asyncio.fixture
async def temporal(temporal_address: str, own_garbage: None) -> Client:
    """Its workers run workflows outside of Temporal's sandbox, as the service does; `test_replay.py` replays every path in the sandbox."""
    return await connect(temporal_address, "default", sandbox=False, patience_s=120)
