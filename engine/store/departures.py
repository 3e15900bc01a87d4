"""Removal of hosts that were silent for long, with the entries that only their catalogs had."""

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
from engine.store.rows.upserts import insert_for
from engine.store.tables import catalog_files, containers, faults, groups, hosts, routes, tools
from engine.store.tool_files import forget_version
from engine.store.tools import erase_tools

_FORGOTTEN = timedelta(days=7)
"""Long enough for a machine that is off over the holidays, short enough for containers, which get a new id each time."""


@dataclass(frozen=True, slots=True)
class EntryFiles:
    """Names of the files whose entries go with their catalogs, and origins of the tools in these files.

    `versions` names the files that describe one version each (`id@version`), `versions_origin` is the origin of their tools.
    """

    tools: str
    groups: str
    containers: str
    origin: str
    versions: str
    versions_origin: str


class Departures:
    """A catalog is the files of one host's data folder. In `catalog_files` it has the id of the host."""

    def __init__(self, database: Database, files: EntryFiles) -> None:
        self._database = database
        self._files = files

    async def forget(self) -> tuple[str, ...]:
        """Remove hosts that were silent for a week. Returns their ids.

        Their routes, faults and catalogs go, and the entries that no other catalog has. A catalog stays while no active host has one,
        because others may depend on it. Any number of hosts may do this. Raises StoreUnavailableError.
        """
        async with self._database.write(alone=CATALOG) as connection:
            await _add_unknown_hosts(connection)
            # Hosts first: one that comes back now waits for this transaction, then imports its catalog again.
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


async def _add_unknown_hosts(connection: AsyncConnection) -> None:
    """Add hosts for catalogs without one, as if they had been heard of now: their last heartbeat is unknown."""
    known = exists().where(hosts.c.host == catalog_files.c.catalog)
    now = database_time()
    empty, nobody = literal("{}"), literal(NOBODY)
    found = select(catalog_files.c.catalog, nobody, literal("unknown"), empty, now, now).where(~known).distinct()
    columns = ["host", "instance", "origin", "buckets", "started_at", "seen_at"]
    statement = insert_for(connection, hosts).from_select(columns, found)
    await connection.execute(statement.on_conflict_do_nothing(index_elements=["host"]))


async def _only_in(connection: AsyncConnection, file: str, gone: Collection[str]) -> set[str]:
    """Ids of the entries that only these catalogs have in this file."""
    rows = (await connection.execute(select(catalog_files.c.catalog, catalog_files.c.entry_ids).filter_by(file=file))).all()
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for catalog, entry_ids in rows:
        found[catalog in gone].update(cast("list[str]", json.loads(entry_ids)))
    return found[True] - found[False]


async def _delete(connection: AsyncConnection, table: Table, column: Column[str], values: Iterable[str]) -> None:
    for value in sorted(values):
        await connection.execute(delete(table).where(column == value))
