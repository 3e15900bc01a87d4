"""Bytes in the table `blob_chunks`, for several hosts that share nothing but a database."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from pathlib import Path

from sqlalchemy import delete, func, select
from sqlalchemy.exc import DBAPIError

from engine.store.clock import now, timestamp
from engine.store.content.incoming import Incoming
from engine.store.content.store import ContentEntry
from engine.store.database import Database
from engine.store.outages import sqlstate_of
from engine.store.tables import blob_chunks
from engine.store.upserts import insert_new
from toolagent.core.failures import ContentMissingError, StoreFullError, StoreUnavailableError

__all__ = ["CHUNK", "DatabaseContent"]

CHUNK = 1 << 19
"""Bytes of each row but the last; the ranges of reads count on it."""

_PAGE = 500
_DISK_FULL = "53100"


class DatabaseContent:
    """Rows of half a mebibyte, written in one transaction and read one by one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, content: Incoming) -> None:
        if await self.size(content.sha256) is not None:
            return
        try:
            await self._write(content, timestamp(now()))
        except StoreUnavailableError as error:
            if _is_full(error.__cause__):
                raise StoreFullError("There is no room for the file in the database.") from error
            raise

    async def read(self, sha256: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        position, skipped, left = start // CHUNK, start % CHUNK, length
        if await self.size(sha256) is None:
            raise ContentMissingError(sha256)
        while left is None or left > 0:
            chunk = await self._chunk(sha256, position)
            if chunk is None:
                return
            piece = chunk[skipped:] if left is None else chunk[skipped : skipped + left]
            left = None if left is None else left - len(piece)
            position, skipped = position + 1, 0
            if piece:
                yield piece

    async def size(self, sha256: str) -> int | None:
        statement = select(func.sum(func.length(blob_chunks.c.content))).where(blob_chunks.c.sha256 == sha256)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one_or_none()

    async def delete(self, sha256: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(blob_chunks).where(blob_chunks.c.sha256 == sha256))

    async def entries(self) -> AsyncGenerator[ContentEntry]:
        last = ""
        while True:
            first_rows = select(blob_chunks.c.sha256, blob_chunks.c.stored_at).where(blob_chunks.c.position == 0)
            page = first_rows.where(blob_chunks.c.sha256 > last).order_by(blob_chunks.c.sha256).limit(_PAGE)
            async with self._database.read() as connection:
                rows = (await connection.execute(page)).all()
            for sha256, stored_at in rows:
                yield ContentEntry(sha256, datetime.fromisoformat(stored_at))
            if len(rows) < _PAGE:
                return
            last = rows[-1][0]

    async def _write(self, content: Incoming, stored_at: str) -> None:
        pieces = _pieces(content.path)
        async with self._database.write() as connection:
            position = 0
            # Bytes of no length are there, too: their one row is empty.
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None or position == 0:
                row = {"sha256": content.sha256, "position": position, "content": piece or b"", "stored_at": stored_at}
                await insert_new(connection, blob_chunks, [row])
                position += 1

    async def _chunk(self, sha256: str, position: int) -> bytes | None:
        """Each in a transaction of its own: a slow reader holds no connection."""
        statement = select(blob_chunks.c.content).where(blob_chunks.c.sha256 == sha256, blob_chunks.c.position == position)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one_or_none()


def _is_full(error: BaseException | None) -> bool:
    orig = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(orig, sqlite3.Error):
        return orig.sqlite_errorcode == sqlite3.SQLITE_FULL
    return error is not None and sqlstate_of(error) == _DISK_FULL


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as source:
        while piece := source.read(CHUNK):
            yield piece
