"""What several kinds of test stand on."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from engine.store.database import Database, migrate
from workers.dev_server import read_config, server_command, temporal_binary
from workers.ports import free_port
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


@pytest.fixture(scope="session")
def temporal_address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A real Temporal server, as `make up` starts it, for all tests of the session."""
    folder, port = tmp_path_factory.mktemp("temporal"), free_port()
    config = read_config(ROOT / "temporal-dev.yaml")
    command = server_command(temporal_binary(), config, folder, port, free_port())
    with (folder / "server.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        yield f"127.0.0.1:{port}"
        server.terminate()


@pytest_asyncio.fixture
async def temporal(temporal_address: str) -> Client:
    """A connection whose workers run workflows in Temporal's sandbox."""
    return await connect(temporal_address, "default", sandbox=True, patience_s=30)
