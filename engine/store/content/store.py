"""The protocol of stores of bytes."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from engine.store.content.incoming import Incoming


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """Stored bytes. `stored_at` is by the clock of the store."""

    sha256: str
    stored_at: datetime


class ContentStore(Protocol):
    """Bytes under their SHA-256 in hex, complete or not at all, and never changed by us.

    `VerifiedContent` detects damage when it reads all bytes. Damaged bytes are set aside: never read again, but kept for a while for
    examination.

    All methods raise ContentUnavailableError (StoreUnavailableError if the database is away).
    """

    async def put(self, content: Incoming) -> None:
        """Store the bytes, also in place of damaged ones. If it raises StoreFullError, nothing of them is left."""
        ...

    def read(self, sha256: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        """A range in pieces; without a length, up to the end. Raises ContentMissingError. Close it with `aclose`."""
        ...

    async def size(self, sha256: str) -> int | None:
        """The size in bytes; None if there are no such bytes."""
        ...

    async def mark(self, sha256: str) -> str | None:
        """A value that changes when the bytes are written again, as far as known without reading them; None if unknown."""
        ...

    async def delete(self, sha256: str) -> None:
        """No error if they do not exist."""
        ...

    def entries(self) -> AsyncGenerator[ContentEntry]:
        """All stored bytes, in no order. Concurrent changes may be missed."""
        ...

    async def set_aside(self, sha256: str) -> None:
        """Set damaged bytes aside: they no longer exist for readers. No error if there are none."""
        ...

    async def is_set_aside(self, sha256: str) -> bool:
        """Whether damaged bytes of this hash are kept. Intact ones may exist as well."""
        ...

    def damaged(self) -> AsyncGenerator[ContentEntry]:
        """All bytes that were set aside, with the time."""
        ...

    async def forget_damaged(self, sha256: str) -> None:
        """No error if none were set aside."""
        ...
