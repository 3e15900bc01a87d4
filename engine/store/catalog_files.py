"""The table `catalog_files`: what the files of each host's data folder held beside their entries, and the order of these."""

import json
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database
from engine.store.tables import catalog_files
from engine.store.upserts import upsert

__all__ = ["CATALOG", "CatalogFile", "CatalogFileTable", "ids_of_others"]

CATALOG = "catalog import"
"""Whoever changes the catalog, an import on any host or a person, does it alone (`Database.write`).

The one lock over tools, versions, groups, containers and faults: what was read in a transaction is still so when it writes.
"""


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """`envelope` is the document without its entries, `entry_ids` are these, in the file's order."""

    envelope: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    entry_ids: tuple[str, ...] = ()


class CatalogFileTable:
    """`catalog` says whose data folder a file lies in: hosts on one database may have different ones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, catalog: str, file: str, content: CatalogFile) -> None:
        row = {"catalog": catalog, "file": file, "envelope": json.dumps(content.envelope), "entry_ids": json.dumps(content.entry_ids)}
        async with self._database.write(alone=CATALOG) as connection:
            await upsert(connection, catalog_files, row)

    async def of_file(self, file: str) -> dict[str, CatalogFile]:
        """By catalog, those that have this file."""
        query = select(catalog_files.c.catalog, catalog_files.c.envelope, catalog_files.c.entry_ids).where(catalog_files.c.file == file)
        rows = await self._database.rows(query.order_by(catalog_files.c.catalog))
        return {catalog: CatalogFile(json.loads(envelope), tuple(cast("list[str]", json.loads(ids)))) for catalog, envelope, ids in rows}

    async def merged(self, file: str) -> CatalogFile | None:
        """What all catalogs together say of a file, the first one before others; None when none has it."""
        found = (await self.of_file(file)).values()
        if not found:
            return None
        envelope: dict[str, JsonValue] = {}
        for one in found:
            envelope = envelope or one.envelope
        return CatalogFile(envelope, tuple(dict.fromkeys(entry for one in found for entry in one.entry_ids)))


async def ids_of_others(connection: AsyncConnection, file: str, catalog: str) -> set[str]:
    """Of the entries that other catalogs have in this file."""
    query = select(catalog_files.c.entry_ids).where(catalog_files.c.file == file, catalog_files.c.catalog != catalog)
    return {entry for ids in await connection.scalars(query) for entry in cast("list[str]", json.loads(ids))}
