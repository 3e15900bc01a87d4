"""Bytes in a bucket of a server that speaks S3, for several hosts."""

from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from engine.store.content.incoming import Incoming
from engine.store.content.parts import S3Place, UnusableContentStoreError
from engine.store.content.store import ContentEntry
from toolagent.core.failures import ContentMissingError, ContentUnavailableError, StoreFullError

_PART = 8 << 20
_PARTS_AT_ONCE = 4
_CHUNK = 1 << 20
_FULL = ("507 Insufficient Storage", "XMinioStorageFull", "QuotaExceeded")
"""How servers report a full disk: the library has no error type for it."""


class S3Content:
    """One object per content. Large ones are uploaded in parts, and appear only after the last part.

    Raises UnusableContentStoreError.
    """

    def __init__(self, place: S3Place) -> None:
        self._where = f"bucket {place.bucket!r}" + (f" at {place.endpoint}" if place.endpoint else "")
        self._prefix = f"{place.prefix.strip('/')}/" if place.prefix.strip("/") else ""
        try:
            self._store = S3Store(
                place.bucket,
                access_key_id=place.access_key_id,
                secret_access_key=place.secret_access_key,
                region=place.region,
                endpoint=place.endpoint or f"https://s3.{place.region}.amazonaws.com",
                client_options={"allow_http": True, "connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=60)},
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=20)},
            )
        except (BaseError, ValueError) as error:
            raise UnusableContentStoreError(f"the S3 settings (TOOL_AGENT_S3_…) cannot be used: {_first_line(error)}") from error

    async def put(self, content: Incoming) -> None:
        # Upload even if the object exists: checking it would take a download.
        with self._named_faults():
            await obstore.put_async(self._store, self._key(content.sha256), content.path, chunk_size=_PART, max_concurrency=_PARTS_AT_ONCE)

    async def read(self, sha256: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        size = await self.size(sha256)
        if size is None:
            raise ContentMissingError(sha256)
        end = size if length is None else min(size, start + length)
        if start >= end:  # S3 has no empty ranges
            return
        with self._named_faults(sha256):
            got = await obstore.get_async(self._store, self._key(sha256), options={"range": (start, end)})
            async for chunk in got.stream(min_chunk_size=_CHUNK):
                yield bytes(chunk)

    async def size(self, sha256: str) -> int | None:
        found = await self._head(self._key(sha256))
        return None if found is None else found["size"]

    async def mark(self, sha256: str) -> str | None:
        if (found := await self._head(self._key(sha256))) is None:
            return None
        return f"{found['e_tag']} {found['size']} {found['last_modified'].isoformat()} {found['version']}"

    async def delete(self, sha256: str) -> None:
        with self._named_faults():
            await obstore.delete_async(self._store, self._key(sha256))

    async def entries(self) -> AsyncGenerator[ContentEntry]:
        async for path, entry in self._listed(self._prefix):
            if not path.startswith(self._damaged("")):
                yield entry

    async def set_aside(self, sha256: str) -> None:
        with suppress(ContentMissingError), self._named_faults(sha256):
            await obstore.rename_async(self._store, self._key(sha256), self._damaged(sha256))

    async def is_set_aside(self, sha256: str) -> bool:
        return await self._head(self._damaged(sha256)) is not None

    async def damaged(self) -> AsyncGenerator[ContentEntry]:
        async for _, entry in self._listed(self._damaged("")):
            yield entry

    async def forget_damaged(self, sha256: str) -> None:
        with self._named_faults():
            await obstore.delete_async(self._store, self._damaged(sha256))

    async def _head(self, key: str) -> "obstore.ObjectMeta | None":
        """What the server says of an object; None where there is none."""
        try:
            with self._named_faults(key):
                return await obstore.head_async(self._store, key)
        except ContentMissingError:
            return None

    async def _listed(self, prefix: str) -> AsyncGenerator[tuple[str, ContentEntry]]:
        with self._named_faults():
            async for page in obstore.list(self._store, prefix or None, chunk_size=1000):
                for found in page:
                    yield found["path"], ContentEntry(found["path"].rsplit("/", 1)[-1], found["last_modified"])

    def _damaged(self, sha256: str) -> str:
        return f"{self._prefix}damaged/{sha256}"

    def _key(self, sha256: str) -> str:
        return f"{self._prefix}{sha256[:2]}/{sha256}"

    @contextmanager
    def _named_faults(self, sha256: str | None = None) -> Generator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if sha256 is not None:
                raise ContentMissingError(sha256) from error
            raise ContentUnavailableError(f"There is no {self._where}; make it, or name another (TOOL_AGENT_S3_BUCKET).") from error
        except BaseError as error:
            if any(word in str(error) for word in _FULL):
                raise StoreFullError(f"There is no room for the file in {self._where}.") from error
            raise ContentUnavailableError(f"Files cannot be kept in {self._where}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """The first line of a message; the rest dumps the library's structures."""
    return str(error).split("\n", 1)[0][:300]
