"""Forgetting hosts that were not heard of for long, with what only their catalogs had."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from sqlalchemy import Column, Table, delete, exists, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_files import CATALOG
from engine.store.clock import database_time
from engine.store.database import Database
from engine.store.hosts import NOBODY
from engine.store.tables import catalog_files, containers, faults, groups, hosts, routes, tools
from engine.store.tool_files import forget_version
from engine.store.tools import erase_tools
from engine.store.upserts import insert_for

_FORGOTTEN = timedelta(days=7)
"""Long enough for a machine that is off over the holidays, short enough for containers that get a new id each time."""


@dataclass(frozen=True, slots=True)
class EntryFiles:
    """The names of the files whose entries go with the catalogs they are in, and the origins of tools from files.

    `versions` are the files of which each describes one version (`id@version`), `versions_origin` is that of their tools.
    """

    tools: str
    groups: str
    containers: str
    origin: str
    versions: str
    versions_origin: str


class Departures:
    """A catalog is what the files of one host's data folder said; `catalog_files` knows it by the id of the host."""

    def __init__(self, database: Database, files: EntryFiles) -> None:
        self._database = database
        self._files = files

    async def forget(self) -> tuple[str, ...]:
        """Forget hosts that were not heard of for a week, whether they died or stopped. Returns their ids.

        Their routes, faults and catalogs go, and the entries that no other catalog has. A catalog stays while no host that was heard of
        since has one: others may live on it. Any number of hosts may do this. Raises StoreUnavailableError.
        """
        async with self._database.write(alone=CATALOG) as connection:
            await _take_note_of_strangers(connection)
            # The rows go first: a host that comes back now waits for the end of this, and then imports what is left.
            gone = tuple(sorted(await connection.scalars(await self._removal(connection))))
            if gone:
                await self._drop(connection, gone)
        return gone

    async def _removal(self, connection: AsyncConnection):
        old = hosts.c.seen_at < database_time(-_FORGOTTEN)
        others = select(catalog_files.c.catalog).join(hosts, hosts.c.host == catalog_files.c.catalog)
        others = others.where(catalog_files.c.file == self._files.tools, ~old).limit(1)
        if (await connection.execute(others)).one_or_none() is None:
            old &= ~exists().where(catalog_files.c.catalog == hosts.c.host)
        return delete(hosts).where(old).returning(hosts.c.host)

    async def _drop(self, connection: AsyncConnection, gone: Collection[str]) -> None:
        orphans = {file: await _only_in(connection, file, gone) for file in (self._files.tools, self._files.groups, self._files.containers)}
        ours = select(tools.c.tool_id).where(tools.c.origin == self._files.origin, tools.c.removed_at.is_(None))
        await erase_tools(connection, sorted(orphans[self._files.tools].intersection(await connection.scalars(ours))))
        theirs = select(tools.c.tool_id).where(tools.c.origin == self._files.versions_origin, tools.c.removed_at.is_(None))
        known = set(await connection.scalars(theirs))
        for tool_id, _, version in (entry.rpartition("@") for entry in sorted(await _only_in(connection, self._files.versions, gone))):
            if tool_id in known:
                await forget_version(connection, tool_id, version, None)
        await _delete(connection, groups, groups.c.group_id, orphans[self._files.groups])
        await _delete(connection, containers, containers.c.container_id, orphans[self._files.containers])
        for table, column in ((catalog_files, catalog_files.c.catalog), (faults, faults.c.catalog), (routes, routes.c.host)):
            await _delete(connection, table, column, gone)


async def _take_note_of_strangers(connection: AsyncConnection) -> None:
    """A catalog whose host has no row counts as heard of now: when it was, nobody knows."""
    known = exists().where(hosts.c.host == catalog_files.c.catalog)
    now = database_time()
    empty, nobody = literal("{}"), literal(NOBODY)
    found = select(catalog_files.c.catalog, nobody, literal("unknown"), empty, now, now).where(~known).distinct()
    columns = ["host", "instance", "origin", "buckets", "started_at", "seen_at"]
    statement = insert_for(connection, hosts).from_select(columns, found)
    await connection.execute(statement.on_conflict_do_nothing(index_elements=["host"]))


async def _only_in(connection: AsyncConnection, file: str, gone: Collection[str]) -> set[str]:
    """The entries that these catalogs' file has and no other's."""
    rows = (await connection.execute(select(catalog_files.c.catalog, catalog_files.c.entry_ids).filter_by(file=file))).all()
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for catalog, entry_ids in rows:
        found[catalog in gone].update(cast("list[str]", json.loads(entry_ids)))
    return found[True] - found[False]


async def _delete(connection: AsyncConnection, table: Table, column: Column[str], values: Iterable[str]) -> None:
    for value in sorted(values):
        await connection.execute(delete(table).where(column == value))
