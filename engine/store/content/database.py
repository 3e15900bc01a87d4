"""Bytes in the table `blob_chunks`, for several hosts that share nothing but a database."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from pathlib import Path

from sqlalchemy import ColumnElement, delete, func, select, update

from engine.store.clock import timestamp
from engine.store.content.incoming import Incoming
from engine.store.content.store import ContentEntry
from engine.store.content.verified import digest_of
from engine.store.database import DatabaseAccess
from engine.store.rows.upserts import insert_new
from engine.store.tables import blob_chunks
from toolagent.core.failures import ContentMissingError, StoreFullError, StoreUnwritableError

column = blob_chunks.c

CHUNK = 1 << 19
"""Bytes per row, except the last. Reads of ranges rely on it."""

_PAGE = 500


class DatabaseContent(DatabaseAccess):
    """Rows of half a mebibyte, written in one transaction and read one by one. Damaged bytes have negative positions."""

    async def put(self, content: Incoming) -> None:
        if await self._is_whole(content.sha256):
            return
        try:
            await self._write(content, timestamp())
        except StoreUnwritableError as error:
            if error.cause == "disk_full":
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
        statement = select(func.sum(func.length(column.content))).where(*_here(sha256))
        return await self._database.scalar(statement)

    async def mark(self, sha256: str) -> str | None:  # noqa: ARG002 - a damaged page changes nothing that could be asked for
        return None

    async def delete(self, sha256: str) -> None:
        await self._database.change(delete(blob_chunks).where(*_here(sha256)))

    def entries(self) -> AsyncGenerator[ContentEntry]:
        return self._listed(0)

    async def set_aside(self, sha256: str) -> None:
        if await self.size(sha256) is None:
            return
        async with self._database.write() as connection:
            await connection.execute(delete(blob_chunks).where(*_aside(sha256)))
            moved = {"position": -1 - column.position, "stored_at": timestamp()}
            await connection.execute(update(blob_chunks).where(*_here(sha256)).values(moved))

    async def is_set_aside(self, sha256: str) -> bool:
        return bool(await self._database.scalars(select(column.position).where(*_aside(sha256)).limit(1)))

    def damaged(self) -> AsyncGenerator[ContentEntry]:
        return self._listed(-1)

    async def forget_damaged(self, sha256: str) -> None:
        await self._database.change(delete(blob_chunks).where(*_aside(sha256)))

    async def _listed(self, first: int) -> AsyncGenerator[ContentEntry]:
        last = ""
        while True:
            first_rows = select(column.sha256, column.stored_at).filter_by(position=first)
            page = first_rows.where(column.sha256 > last).order_by(column.sha256).limit(_PAGE)
            rows = await self._database.rows(page)
            for sha256, stored_at in rows:
                yield ContentEntry(sha256, datetime.fromisoformat(stored_at))
            if len(rows) < _PAGE:
                return
            last = rows[-1][0]

    async def _is_whole(self, sha256: str) -> bool:
        """Reading is cheaper than writing again, and blocks no one."""
        try:
            return await digest_of(self, sha256) == sha256
        except ContentMissingError:
            return False

    async def _write(self, content: Incoming, stored_at: str) -> None:
        pieces = _pieces(content.path)
        async with self._database.write() as connection:
            await connection.execute(delete(blob_chunks).where(*_here(content.sha256)))
            position = 0
            # Empty content has one empty row.
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None or position == 0:
                row = {"sha256": content.sha256, "position": position, "content": piece or b"", "stored_at": stored_at}
                await insert_new(connection, blob_chunks, [row])
                position += 1

    async def _chunk(self, sha256: str, position: int) -> bytes | None:
        """Each chunk is a query of its own, so that a slow reader holds no connection."""
        statement = select(column.content).filter_by(sha256=sha256, position=position)
        return await self._database.scalar(statement)


def _here(sha256: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return column.sha256 == sha256, column.position >= 0


def _aside(sha256: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return column.sha256 == sha256, column.position < 0


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as source:
        while piece := source.read(CHUNK):
            yield piece
