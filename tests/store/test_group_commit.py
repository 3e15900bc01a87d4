"""Writes share transactions, and a refused one fails alone."""

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database
from engine.store.group_commit import GroupCommit
from engine.store.rows.upserts import upsert_all
from engine.store.tables import groups


class Written:
    """Writes rows of the table `groups`, and records how many were written together."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.together: list[int] = []
        self.commits = GroupCommit[dict[str, object]](database, self._apply, most=4)

    async def _apply(self, connection: AsyncConnection, items: Sequence[dict[str, object]]) -> None:
        self.together.append(len(items))
        await upsert_all(connection, groups, items)

    async def positions(self) -> list[int]:
        async with self.database.read() as connection:
            return sorted(map(int, (await connection.execute(select(groups.c.group_id))).scalars()))


def row(number: int, document: str | None = "{}") -> dict[str, object]:
    return {"group_id": str(number), "document": document}


async def test_what_arrives_while_one_is_under_way_goes_together_into_the_next(database: Database) -> None:
    written = Written(database)
    await asyncio.gather(*(written.commits.write(row(number)) for number in range(10)))
    assert written.together == [4, 4, 2]
    assert await written.positions() == list(range(10))


async def test_what_the_database_refuses_fails_alone(database: Database) -> None:
    written = Written(database)
    outcomes = await asyncio.gather(
        *(written.commits.write(row(number, None if number == 1 else "f")) for number in range(3)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), IntegrityError, type(None)]
    assert await written.positions() == [0, 2]


async def test_a_waiter_that_is_cancelled_takes_nobody_with_it(database: Database) -> None:
    written = Written(database)
    first, second = (asyncio.create_task(written.commits.write(row(number))) for number in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    assert 1 in await written.positions()
