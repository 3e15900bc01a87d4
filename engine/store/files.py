"""Files: names and kinds in the table `files`, their bytes in a content store."""

import asyncio
import hashlib
import mimetypes
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

from sqlalchemy import RowMapping, select, update

from engine.store.clock import now, timestamp
from engine.store.content.incoming import Incoming, incoming
from engine.store.content.store import ContentStore
from engine.store.content.verified import VerifiedContent
from engine.store.content_removals import ContentRemovals
from engine.store.database import Database
from engine.store.rows.upserts import insert_for
from engine.store.tables import files
from toolagent.contracts.records import StoredFile

_FRESH = timedelta(hours=1)
"""A use within this time is not recorded again: retention is counted in days."""


class FileStore:
    """Files are immutable: the same bytes under the same name are the same file with the same id.

    `max_bytes` is the largest size of a new file. `spool` is this machine's folder for incoming files.
    """

    def __init__(self, database: Database, content: ContentStore, spool: Path, max_bytes: int) -> None:
        self._database = database
        self._content = content
        self._verified = VerifiedContent(content)
        self._spool = spool
        self._max_bytes = max_bytes
        self._removals = ContentRemovals(database)

    async def put(
        self, chunks: AsyncIterator[bytes], name: str, media_type: str | None = None, *, max_bytes: int | None = None
    ) -> StoredFile:
        """Store a stream of bytes. If it raises FileTooLargeError, StoreFullError or ContentUnavailableError, nothing is kept."""
        async with incoming(self._spool, chunks, max_bytes or self._max_bytes) as content:
            await self._content.put(content)
            file = await self._note(content, name, media_type)
            await self._make_sure(content)
        return file

    async def get(self, file_id: str) -> StoredFile | None:
        row = await self._row(file_id)
        return StoredFile.model_validate(row) if row is not None else None

    async def use(self, file_id: str) -> StoredFile | None:
        """`get`, and restart its retention, so that the caller has time to read it."""
        row = await self._row(file_id)
        if row is None:
            return None
        noted = update(files).filter_by(file_id=file_id).values(used_at=timestamp())
        if row["used_at"] < timestamp(now() - _FRESH) and not await self._database.change(noted):
            return None  # a sweep came first
        return StoredFile.model_validate(row)

    async def has_content(self, file: StoredFile) -> bool:
        """Whether its bytes exist. Raises ContentDamagedError, and ContentUnavailableError if that is unknown."""
        return await self._verified.is_there(file)

    def read(self, file: StoredFile, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        """Its bytes, or a range of them, piece by piece. The last piece comes only after the hash of all bytes was verified.

        Raises ContentMissingError, ContentDamagedError, ContentUnavailableError.
        """
        return self._verified.read(file, start, length)

    async def materialise(self, file: StoredFile, folder: Path) -> Path:
        """A copy under its own name, for tools that depend on names. Changing it does not change the original.

        Raises ContentMissingError, ContentDamagedError, ContentUnavailableError; then there is no copy.
        """
        target = folder / file.file_id / file.name
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        try:
            async with aclosing(self.read(file)) as pieces:
                with await asyncio.to_thread(target.open, "wb") as copy:
                    async for piece in pieces:
                        await asyncio.to_thread(copy.write, piece)
        except BaseException:
            await asyncio.to_thread(target.unlink, missing_ok=True)
            raise
        return target

    async def _row(self, file_id: str) -> RowMapping | None:
        return await self._database.mapping(select(files).filter_by(file_id=file_id))

    async def _make_sure(self, content: Incoming) -> None:
        """Store the bytes again if a sweep removed them. Only a sweep from before they had a name can do so."""
        await self._removals.outlast(content.sha256)
        if await self._content.size(content.sha256) != content.size:
            await self._content.put(content)

    async def _note(self, content: Incoming, name: str, media_type: str | None) -> StoredFile:
        kept_name, moment = _safe_name(name), now()
        file = StoredFile(
            file_id=file_id_of(content.sha256, kept_name),
            name=kept_name,
            media_type=media_type or mimetypes.guess_type(kept_name)[0] or "application/octet-stream",
            size=content.size,
            sha256=content.sha256,
            created_at=moment,
        )
        row = {**file.model_dump(), "created_at": timestamp(moment), "used_at": timestamp(moment)}
        async with self._database.write() as connection:
            statement = insert_for(connection, files).values(**row)
            changed = {"used_at": statement.excluded.used_at}
            found = await connection.execute(
                statement.on_conflict_do_update(index_elements=["file_id"], set_=changed).returning(*files.columns)
            )
            return StoredFile.model_validate(found.mappings().one())


def file_id_of(sha256: str, name: str) -> str:
    return f"file_{hashlib.sha256(f'{sha256}/{name}'.encode()).hexdigest()[:32]}"


def _safe_name(name: str) -> str:
    """The last part of a path, without control characters, and short enough for file systems."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    cleaned = "".join(character for character in last if character.isprintable()).strip()
    stem, dot, ending = cleaned.rpartition(".")
    shortened = f"{_cut(stem, 180)}{dot}{_cut(ending, 20)}" if dot else _cut(cleaned, 200)
    return shortened if shortened.strip(".") else "file"


def _cut(text: str, limit: int) -> str:
    """File systems count bytes."""
    return text.encode("utf-8", "ignore")[:limit].decode("utf-8", "ignore")
