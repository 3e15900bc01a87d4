"""What several kinds of test stand on."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from engine.runtimes.ports import free_port
from engine.store.database import Database, migrate
from workers.dev_server import read_config, server_command, temporal_binary
from workers.temporal_connection import connect


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all tables and nothing in them; migrating takes a third of a second, copying does not."""
    folder = tmp_path_factory.mktemp("database")
    migrate(f"sqlite+aiosqlite:///{folder / 'empty.db'}", folder / "migration.lock")
    return folder / "empty.db"


@pytest_asyncio.fixture
async def database(empty_database: Path, tmp_path: Path) -> AsyncGenerator[Database]:
    """A migrated SQLite database of the test's own."""
    await asyncio.to_thread(shutil.copyfile, empty_database, tmp_path / "test.db")
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'test.db'}")
    yield database
    await database.close()


ROOT = Path(__file__).parent.parent


@contextmanager
def temporal_server(folder: Path) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """A real Temporal server, as `make up` starts it: its address and its process."""
    port = free_port()
    command = server_command(temporal_binary(), read_config(ROOT / "temporal-dev.yaml"), folder, port, free_port())
    with (folder / "server.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        yield f"127.0.0.1:{port}", server
        server.terminate()


@pytest.fixture(scope="session")
def temporal_address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """One server for all tests of the session."""
    with temporal_server(tmp_path_factory.mktemp("temporal")) as (address, _):
        yield address


@pytest.fixture
def own_temporal(tmp_path: Path) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """A server that the test may kill."""
    with temporal_server(tmp_path) as server:
        yield server


@pytest_asyncio.fixture
async def temporal(temporal_address: str) -> Client:
    """A connection whose workers run workflows in Temporal's sandbox."""
    return await connect(temporal_address, "default", sandbox=True, patience_s=30)
