"""What every store of bytes has to be able to do."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from engine.store.content.incoming import Incoming


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """Bytes that are there. `stored_at` is by the clock of whoever stores them."""

    sha256: str
    stored_at: datetime


class ContentStore(Protocol):
    """Bytes under their SHA-256 in hex: all of them or none, never changed by us.

    What else changes them is found by whoever reads all of them (`VerifiedContent`), and set aside: never read again, but kept for a
    while for whoever looks into it.

    Everything raises ContentUnavailableError (StoreUnavailableError when it is the database that is away).
    """

    async def put(self, content: Incoming) -> None:
        """Keep the bytes, in place of damaged ones too. Raises StoreFullError, and then nothing is left of them."""
        ...

    def read(self, sha256: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        """A range piece by piece, to the end without a length. Raises ContentMissingError. To be closed with `aclose`."""
        ...

    async def size(self, sha256: str) -> int | None:
        """In bytes; None when they are not there."""
        ...

    async def mark(self, sha256: str) -> str | None:
        """Another one once the bytes were written again, as far as can be said without reading them; None when nothing can be said."""
        ...

    async def delete(self, sha256: str) -> None:
        """Not an error when they are not there."""
        ...

    def entries(self) -> AsyncGenerator[ContentEntry]:
        """All that is there, in no order; what comes or goes meanwhile may be missed."""
        ...

    async def set_aside(self, sha256: str) -> None:
        """These bytes are damaged: from now on they are not there. Not an error when they are not."""
        ...

    async def is_set_aside(self, sha256: str) -> bool:
        """Whether damaged bytes of this hash are kept; right ones may have come since."""
        ...

    def damaged(self) -> AsyncGenerator[ContentEntry]:
        """All that was set aside, and when."""
        ...

    async def forget_damaged(self, sha256: str) -> None:
        """Not an error when none were set aside."""
        ...
