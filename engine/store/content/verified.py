"""Verified reading: no reader gets other bytes than those that were stored."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from engine.store.content.store import ContentStore
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentDamagedError, ContentMissingError, StoreUnavailableError

_REMEMBERED = 1024
_REMEMBERED_S = 600.0
"""How long a verified file stays verified for reads of ranges, while its mark is unchanged."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class VerifiedContent:
    """Sets damaged bytes aside when it finds them. Every read of them raises ContentDamagedError.

    A reader of a whole file gets the last piece only after its hash was verified. A range comes only from a recently verified file.
    """

    def __init__(self, store: ContentStore) -> None:
        self._store = store
        self._whole: OrderedDict[str, tuple[str, float]] = OrderedDict()

    async def read(self, file: StoredFile, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        """Raises ContentMissingError, ContentDamagedError, ContentUnavailableError."""
        is_all = start == 0 and (length is None or length >= file.size)
        if not is_all:
            await self._require_whole(file)
        async with aclosing(self._all(file) if is_all else self._store.read(file.sha256, start, length)) as pieces:
            async for piece in pieces:
                yield piece

    async def is_there(self, file: StoredFile) -> bool:
        """Whether the bytes exist, checked by size alone. Raises ContentDamagedError, ContentUnavailableError."""
        size = await self._store.size(file.sha256)
        if size is None and await self._store.is_set_aside(file.sha256):
            raise ContentDamagedError(file.file_id, file.name)
        if size is not None and size != file.size:
            raise await self._condemned(file)
        return size is not None

    async def _all(self, file: StoredFile) -> AsyncGenerator[bytes]:
        digest, size, held = hashlib.sha256(), 0, b""
        mark = await self._store.mark(file.sha256)
        async with aclosing(self._found(file)) as pieces:
            async for piece in pieces:
                await asyncio.to_thread(digest.update, piece)
                size += len(piece)
                if size > file.size:
                    break
                if held:
                    yield held
                held = piece
        if digest.hexdigest() != file.sha256:
            raise await self._condemned(file)
        self._remember(file.sha256, mark)
        if held:
            yield held

    async def _found(self, file: StoredFile) -> AsyncGenerator[bytes]:
        try:
            async with aclosing(self._store.read(file.sha256)) as pieces:
                async for piece in pieces:
                    yield piece
        except ContentMissingError as error:
            if await self._store.is_set_aside(file.sha256):
                raise ContentDamagedError(file.file_id, file.name) from error
            raise

    async def _require_whole(self, file: StoredFile) -> None:
        mark, since = self._whole.get(file.sha256, ("", 0.0))
        if since < time.monotonic() - _REMEMBERED_S or mark != await self._store.mark(file.sha256):
            async with aclosing(self._all(file)) as pieces:
                async for _ in pieces:
                    pass

    def _remember(self, sha256: str, mark: str | None) -> None:
        if mark is not None:
            self._whole[sha256] = (mark, time.monotonic())
            self._whole.move_to_end(sha256)
            while len(self._whole) > _REMEMBERED:
                self._whole.popitem(last=False)

    async def _condemned(self, file: StoredFile) -> ContentDamagedError:
        """Set the bytes aside, unless intact ones were stored meanwhile."""
        try:
            if await digest_of(self._store, file.sha256) != file.sha256:
                await self._store.set_aside(file.sha256)
        except (ContentMissingError, StoreUnavailableError) as error:
            _log.warning("damaged_content_not_set_aside", file_id=file.file_id, sha256=file.sha256, reason=str(error))
        _log.error("content_damaged", file_id=file.file_id, name=file.name, sha256=file.sha256)
        return ContentDamagedError(file.file_id, file.name)


async def digest_of(store: ContentStore, sha256: str) -> str:
    """The actual hash of the bytes stored under this one. Raises ContentMissingError, ContentUnavailableError."""
    digest = hashlib.sha256()
    async with aclosing(store.read(sha256)) as pieces:
        async for piece in pieces:
            await asyncio.to_thread(digest.update, piece)
    return digest.hexdigest()
