"""Removal of files that nothing needs.

Several hosts may sweep at once.

A file that was not used for the retention time and has no references loses its row. Its bytes go too, unless another file has the same.
The files of a running call were used at its admission, less than the retention ago: so the retention has a minimum.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import ColumnElement, delete, exists, select

from engine.store.clock import now, timestamp
from engine.store.content.incoming import remove_stale
from engine.store.content.store import ContentStore
from engine.store.content_removals import ContentRemovals
from engine.store.database import Database
from engine.store.tables import file_references, files

_PAGE = 500
DAMAGED_AGE = timedelta(days=7)
"""How long damaged bytes are kept for examination."""

_UNNAMED_AGE = timedelta(hours=2)
"""Bytes are stored a moment before the row that names them. Clocks may differ by an hour."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How many were removed: rows of files, contents, incomplete uploads, and contents set aside as damaged."""

    files: int = 0
    contents: int = 0
    incoming: int = 0
    damaged: int = 0


async def sweep_files(
    database: Database, content: ContentStore, spool: Path, retention: timedelta, removals: ContentRemovals | None = None
) -> Swept:
    """Remove files older than the retention. `spool` is this host's folder for incoming files.

    It may be stopped or die at any point: the next sweep continues. Raises ContentUnavailableError, StoreUnavailableError.
    """
    removals = removals or ContentRemovals(database)
    # The sweep below finds the work of a sweep that died, once its marks are gone.
    await asyncio.gather(*(removals.outlast(sha256) for sha256 in (await removals.unfinished())[:_PAGE]))
    removed, contents = 0, 0
    async for page in _expired(database, timestamp(now() - retention)):
        removed += len(page)
        contents += sum([await removals.remove(content, sha256) for sha256 in dict.fromkeys(page)])
    async for sha256 in _unnamed(database, content):
        contents += await removals.remove(content, sha256)
    forgotten = await _forget_damaged(content)
    return Swept(removed, contents, await asyncio.to_thread(remove_stale, spool), forgotten)


async def _forget_damaged(content: ContentStore) -> int:
    old = [entry.sha256 async for entry in content.damaged() if entry.stored_at < now() - DAMAGED_AGE]
    for sha256 in old:
        await content.forget_damaged(sha256)
    return len(old)


async def _expired(database: Database, before: str) -> AsyncIterator[Sequence[str]]:
    """Remove the rows page by page, and yield the hashes of their bytes. A call that uses a file meanwhile either keeps it or misses it."""
    unused: tuple[ColumnElement[bool], ...] = (files.c.used_at < before, ~exists().where(file_references.c.file_id == files.c.file_id))
    while True:
        page = select(files.c.file_id).where(*unused).order_by(files.c.used_at).limit(_PAGE)
        chosen = await database.scalars(page)
        if not chosen:
            return
        async with database.write() as connection:
            statement = delete(files).where(files.c.file_id.in_(chosen), *unused).returning(files.c.sha256)
            gone = (await connection.scalars(statement)).all()
        yield gone


async def _unnamed(database: Database, content: ContentStore) -> AsyncIterator[str]:
    """Old bytes that belong to no file: their writer died between storing and naming them."""
    before, page = now() - _UNNAMED_AGE, list[str]()
    async for entry in content.entries():
        if entry.stored_at < before:
            page.append(entry.sha256)
        if len(page) == _PAGE:
            for sha256 in await _without_file(database, page):
                yield sha256
            page = []
    for sha256 in await _without_file(database, page):
        yield sha256


async def _without_file(database: Database, hashes: Sequence[str]) -> list[str]:
    named = await database.scalars(select(files.c.sha256).where(files.c.sha256.in_(hashes)))
    return sorted(set(hashes).difference(named))
