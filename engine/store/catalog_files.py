"""The table `catalog_files`: for each catalog file of each host, the envelope and the order of its entries."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from pydantic import BaseModel, JsonValue
from sqlalchemy import Table, bindparam, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database, DatabaseAccess
from engine.store.rows.upserts import upsert, upsert_all
from engine.store.tables import catalog_files

T = TypeVar("T", bound=BaseModel)

CATALOG = "catalog import"
"""The lock of all changes of the catalog, by imports or people (`Database.write`).

It covers tools, versions, groups, containers and faults: what a transaction has read is still true when it writes.
"""


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """`envelope` is the document without its entries. `entry_ids` are their ids, in the file's order."""

    envelope: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    entry_ids: tuple[str, ...] = ()


class CatalogFileTable(DatabaseAccess):
    """`catalog` is the id of the host with the data folder: hosts on one database may have different ones."""

    async def save(self, catalog: str, file: str, content: CatalogFile) -> None:
        row = {"catalog": catalog, "file": file, "envelope": json.dumps(content.envelope), "entry_ids": json.dumps(content.entry_ids)}
        async with self._database.write(alone=CATALOG) as connection:
            await upsert(connection, catalog_files, row)

    async def of_file(self, file: str) -> dict[str, CatalogFile]:
        """This file of each catalog that has it."""
        query = select(catalog_files.c.catalog, catalog_files.c.envelope, catalog_files.c.entry_ids).filter_by(file=file)
        rows = await self._database.rows(query.order_by(catalog_files.c.catalog))
        return {catalog: CatalogFile(json.loads(envelope), tuple(cast("list[str]", json.loads(ids)))) for catalog, envelope, ids in rows}

    async def merged(self, file: str) -> CatalogFile | None:
        """This file of all catalogs, merged in order; None if no catalog has it."""
        found = (await self.of_file(file)).values()
        if not found:
            return None
        envelope: dict[str, JsonValue] = {}
        for one in found:
            envelope = envelope or one.envelope
        return CatalogFile(envelope, tuple(dict.fromkeys(entry for one in found for entry in one.entry_ids)))


async def ids_of_others(connection: AsyncConnection, file: str, catalog: str) -> set[str]:
    """Ids of the entries that other catalogs have in this file."""
    query = select(catalog_files.c.entry_ids).where(catalog_files.c.file == file, catalog_files.c.catalog != catalog)
    return {entry for ids in await connection.scalars(query) for entry in cast("list[str]", json.loads(ids))}


class CatalogDocuments(Generic[T]):
    """A table of one file's entries: JSON documents by id, each with its entry in the file."""

    def __init__(self, database: Database, model: type[T], table: Table, key: str) -> None:
        self._database, self._model, self._table, self._key = database, model, table, table.c[key]
        self._one = delete(table).where(self._key == bindparam("of_entry"))

    async def list_all(self) -> tuple[T, ...]:
        return tuple(entry for entry, _ in await self.list_stored())

    async def list_stored(self) -> tuple[tuple[T, str | None], ...]:
        """Each document with its entry in the file as JSON text; None if it came from no file."""
        rows = await self._database.rows(select(self._table.c.document, self._table.c.raw).order_by(self._key))
        return tuple((self._model.model_validate_json(document), raw) for document, raw in rows)

    async def bring_in(self, new: Sequence[tuple[T, str]], gone: Collection[str]) -> None:
        """Write the `new` documents with their entries in the file, and remove the `gone` ones."""
        rows = [{**self.row(entry), "raw": raw} for entry, raw in new]
        async with self._database.write(alone=CATALOG) as connection:
            if gone:
                await connection.execute(self._one, [{"of_entry": entry_id} for entry_id in gone])
            await upsert_all(connection, self._table, rows)

    def row(self, entry: T) -> dict[str, object]:
        """The row without the file's entry."""
        return {self._key.name: getattr(entry, self._key.name), "document": entry.model_dump_json()}
