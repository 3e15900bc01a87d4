"""A commit whose answer is lost: it was made, and the caller does not know."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from sqlalchemy.engine import make_url

from engine.store.calls import CallTable
from engine.store.database import CommitUnknownError, Database
from tests.store.test_calls import RECORD


@asynccontextmanager
async def deaf_to_one_commit(url: str) -> AsyncGenerator[str]:
    """A proxy to the server that drops its first answer to a COMMIT, with the connection."""
    server, is_over = make_url(url), asyncio.Event()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, there = await asyncio.open_connection(server.host, server.port)
        is_committing = asyncio.Event()

        async def pass_back() -> None:
            while (said := await answers.read(65_536)) and not is_committing.is_set():
                writer.write(said)
            writer.close()

        back = asyncio.create_task(pass_back())
        while asked := await reader.read(65_536):
            if b"COMMIT;" in asked and not is_over.is_set():
                is_over.set()
                is_committing.set()
            there.write(asked)
        there.close()
        await back

    async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as proxy:
        yield server.set(port=proxy.sockets[0].getsockname()[1]).render_as_string(hide_password=False)


@pytest_asyncio.fixture
async def deaf(postgres_url: str) -> AsyncGenerator[Database]:
    async with deaf_to_one_commit(postgres_url) as url:
        database = Database(url)
        yield database
        await database.close()


@pytest.mark.promise("sent-is-marked-first")
async def test_a_mark_of_which_nobody_knows_whether_it_was_committed_is_taken_back(deaf: Database) -> None:
    calls = CallTable(deaf)
    with pytest.raises(CommitUnknownError):
        await calls.mark_sent(RECORD)
    record = await calls.get(RECORD.call_id)
    assert record is not None, "It was committed."
    assert record.sent_at is None
    assert await calls.mark_sent(RECORD) == 1


@pytest.mark.promise("never-twice")
async def test_an_earlier_mark_stays(deaf: Database, postgres_url: str) -> None:
    before = Database(postgres_url)
    assert await CallTable(before).mark_sent(RECORD) == 1
    await before.close()
    calls = CallTable(deaf)
    with pytest.raises(CommitUnknownError):
        await calls.mark_sent(RECORD, again=True)
    assert await calls.mark_sent(RECORD) == 0
