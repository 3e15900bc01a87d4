"""The content store: bytes by their hash in a folder, names and kinds in the table `files`."""

import asyncio
import errno
import hashlib
import mimetypes
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import select

from engine.store.clock import now, timestamp
from engine.store.database import Database
from engine.store.tables import files
from engine.store.upserts import insert_new
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import FileTooLargeError

__all__ = ["FileStore", "file_id_of"]

_CHUNK = 1 << 20


class FileStore:
    """Files are never changed: the same bytes under the same name are the same file with the same id.

    `max_bytes` is the size of the largest file that is taken in.
    """

    def __init__(self, database: Database, folder: Path, max_bytes: int) -> None:
        self._database = database
        self._folder = folder
        self._max_bytes = max_bytes

    async def put(self, chunks: AsyncIterator[bytes], name: str, media_type: str | None = None) -> StoredFile:
        """Take in a stream of bytes. Raises FileTooLargeError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        descriptor, temporary = tempfile.mkstemp(dir=self._folder, prefix=".incoming-")
        try:
            with os.fdopen(descriptor, "wb") as target:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._max_bytes:
                        raise FileTooLargeError(self._max_bytes)
                    digest.update(chunk)
                    await asyncio.to_thread(target.write, chunk)
                await asyncio.to_thread(_sync, target)
            blob = self._blob(digest.hexdigest())
            await asyncio.to_thread(blob.parent.mkdir, parents=True, exist_ok=True)
            await asyncio.to_thread(Path(temporary).replace, blob)
        finally:
            await asyncio.to_thread(Path(temporary).unlink, missing_ok=True)
        return await self._note(digest.hexdigest(), size, name, media_type)

    async def put_file(self, path: Path, name: str | None = None) -> StoredFile:
        """Take in a file of this machine; it stays where it is. Raises FileTooLargeError, OSError (also for what is no regular file)."""
        return await self.put(_chunks(path), name or path.name)

    async def get(self, file_id: str) -> StoredFile | None:
        async with self._database.read() as connection:
            row = (await connection.execute(select(files).where(files.c.file_id == file_id))).mappings().one_or_none()
        return StoredFile.model_validate(row) if row is not None else None

    def path(self, file: StoredFile) -> Path:
        """Where its bytes are on this machine; read-only."""
        return self._blob(file.sha256)

    async def materialise(self, file: StoredFile, folder: Path) -> Path:
        """A copy under its own name, for tools that look at names. The original cannot be changed through it."""
        target = folder / file.file_id / file.name
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(shutil.copyfile, self.path(file), target)
        return target

    async def _note(self, sha256: str, size: int, name: str, media_type: str | None) -> StoredFile:
        safe_name = _safe_name(name)
        file = StoredFile(
            file_id=file_id_of(sha256, safe_name),
            name=safe_name,
            media_type=media_type or mimetypes.guess_type(safe_name)[0] or "application/octet-stream",
            size=size,
            sha256=sha256,
            created_at=now(),
        )
        async with self._database.write() as connection:
            await insert_new(
                connection, files, [{**file.model_dump(), "created_at": timestamp(file.created_at), "used_at": timestamp(file.created_at)}]
            )
        return await self.get(file.file_id) or file

    def _blob(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256


def file_id_of(sha256: str, name: str) -> str:
    return f"file_{hashlib.sha256(f'{sha256}/{name}'.encode()).hexdigest()[:32]}"


def _safe_name(name: str) -> str:
    """The last part of whatever path was said, without what would make it another path or a control character."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    cleaned = "".join(character for character in last if character.isprintable()).strip()
    stem, dot, ending = cleaned.rpartition(".")
    shortened = f"{_cut(stem, 180)}{dot}{_cut(ending, 20)}" if dot else _cut(cleaned, 200)
    return shortened if shortened.strip(".") else "file"


def _cut(text: str, limit: int) -> str:
    """File systems count bytes."""
    return text.encode("utf-8", "ignore")[:limit].decode("utf-8", "ignore")


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(_open, path) as source:
        while chunk := await asyncio.to_thread(source.read, _CHUNK):
            yield chunk


def _open(path: Path) -> BinaryIO:
    """Only a regular file: opening or reading a pipe would wait for ever for its other end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(descriptor, "rb")
