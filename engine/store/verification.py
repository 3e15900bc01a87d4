"""Checks the stored data, also while a service is running: it only reads."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Column, Table, func, select

from engine.store.catalog_entries import CatalogEntryTable
from engine.store.connection.outages import RESTORE
from engine.store.connection.sqlite_files import damages_of
from engine.store.content.store import ContentStore
from engine.store.content.verified import digest_of
from engine.store.database import Database
from engine.store.file_references import holder_of_version
from engine.store.tables import METADATA, file_references, files, messages, tool_outcomes
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentMissingError, StoreUnavailableError

UPLOAD = "upload the right bytes again with POST /files"
REMAKE = "start the service with the data folder that has the tool: its archive is made again"


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged thing, the fault, and the remedy."""

    what: str
    wrong: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Verified:
    """A checked part: the number of checked things, and the damages."""

    part: str
    checked: int
    damages: tuple[Damage, ...] = ()


async def verify_sqlite_file(part: str, file: Path, remedy: str = RESTORE) -> Verified:
    """By SQLite's own check of every page and index."""
    said = await asyncio.to_thread(damages_of, file)
    return Verified(part, 1, tuple(Damage(str(file), line, remedy) for line in said))


async def verify_database(database: Database) -> Verified:
    """Check SQLite's whole file; on a server, that every table is readable."""
    if database.file is not None:
        return await verify_sqlite_file("database", database.file)
    damages: list[Damage] = []
    for table in METADATA.sorted_tables:
        try:
            async with database.read() as connection:
                # The server reads every column of every row, and returns only a count.
                await connection.execute(select(func.count()).select_from(select(table).offset(0).subquery()))
        except StoreUnavailableError as error:
            damages.append(Damage(f"table {table.name}", str(error), RESTORE))
    return Verified("database", len(METADATA.sorted_tables), tuple(damages))


async def verify_references(database: Database) -> Verified:
    """Whether every file that a call, a task or a version of a tool names is known. Raises StoreUnavailableError."""
    found: list[Damage] = []
    checked = 0
    naming: tuple[tuple[Table, Column[str]], ...] = (
        (file_references, file_references.c.holder),
        (messages, messages.c.conversation_id),
        (tool_outcomes, tool_outcomes.c.conversation_id),
    )
    async with database.read() as connection:
        known = set(await connection.scalars(select(files.c.file_id)))
        for table, holder in naming:
            rows = (await connection.execute(select(table.c.file_id, holder).where(table.c.file_id.is_not(None)))).all()
            checked += len(rows)
            found += [
                Damage(file_id, f"named by {by} ({table.name}), and there is no such file", RESTORE)
                for file_id, by in rows
                if file_id not in known
            ]
    archives = await CatalogEntryTable(database).content_of()
    for (tool_id, version, _), file_id in archives.items():
        if file_id not in known:
            found.append(Damage(file_id, f"the archive of {tool_id}@{version}, and there is no such file", REMAKE))
    return Verified("references", checked + len(archives), tuple(found))


async def verify_content(database: Database, content: ContentStore) -> Verified:
    """Every file's bytes, and bytes that no file names, against their hashes. Raises StoreUnavailableError."""
    damages: list[Damage] = []
    checked: set[str] = set()
    async for file in _files(database):
        if file.sha256 not in checked:
            checked.add(file.sha256)
            if (wrong := await _wrong(content, file.sha256)) and await _is_known(database, file.file_id):
                damages.append(Damage(f"{file.file_id} ({file.name})", wrong, await _remedy(database, file.file_id)))
    async for entry in content.entries():
        if entry.sha256 not in checked:
            checked.add(entry.sha256)
            if (wrong := await _wrong(content, entry.sha256)) and wrong != _MISSING:
                damages.append(Damage(entry.sha256, f"{wrong}; no file has these bytes", "nothing: they are swept"))
    return Verified("content", len(checked), tuple(damages))


_MISSING = "its bytes are missing"


async def _wrong(content: ContentStore, sha256: str) -> str:
    try:
        return "" if await digest_of(content, sha256) == sha256 else "its bytes are damaged"
    except ContentMissingError:
        return "its bytes are damaged, and were set aside" if await content.is_set_aside(sha256) else _MISSING


async def _remedy(database: Database, file_id: str) -> str:
    """Archives of folders can be made again; other files only by their owner."""
    archives = await CatalogEntryTable(database).content_of()
    tools = [holder_of_version(tool_id, version) for (tool_id, version, _), content in archives.items() if content == file_id]
    return f"{REMAKE} ({', '.join(tools)})" if tools else UPLOAD


async def _files(database: Database) -> AsyncGenerator[StoredFile]:
    rows = await database.mappings(select(files).order_by(files.c.file_id))
    for row in rows:
        yield StoredFile.model_validate(row)


async def _is_known(database: Database, file_id: str) -> bool:
    """A sweep may have removed it meanwhile."""
    return bool(await database.scalars(select(files.c.file_id).filter_by(file_id=file_id)))
