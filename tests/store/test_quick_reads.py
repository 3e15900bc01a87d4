"""A number read on the event loop's own thread is the newest one; if SQLite does not answer, the usual connection is used."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from engine.store.catalog_state import CatalogState
from engine.store.connection.quick_reads import QuickReads
from engine.store.database import Database
from toolagent.core.failures import StoreUnavailableError

_NEXT = "UPDATE catalog_state SET number = number + 1"


@pytest.fixture
def file(empty_database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(empty_database, tmp_path / "tool agent#1.db"))


async def test_what_another_process_has_committed_is_read_also_while_it_writes_on(file: Path) -> None:
    database, other = Database(f"sqlite+aiosqlite:///{file}"), sqlite3.connect(file, isolation_level=None)
    state = CatalogState(database)
    first = await state.number()
    other.execute("BEGIN IMMEDIATE")
    other.execute(_NEXT)
    assert await state.number() == first
    other.execute("COMMIT")
    assert await state.number() == first + 1
    other.close()
    await database.close()


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    assert QuickReads(file).number("SELECT 1") is None
    assert not file.exists()


async def test_what_cannot_be_read_at_once_is_asked_the_usual_way_which_says_why(file: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{file}")
    with pytest.raises(StoreUnavailableError, match="no such table"):
        await database.number(text("SELECT number FROM none"))
    assert await database.number(text("SELECT 1")) == 1
    await database.close()


async def test_a_closed_database_is_not_read(file: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{file}")
    state = CatalogState(database)
    await state.number()
    await database.close()
    with pytest.raises(StoreUnavailableError):
        await state.number()
