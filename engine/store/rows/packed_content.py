"""JSON that is stored in a row if small, and as a file of the content store if large."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from pydantic import JsonValue

from engine.store.files import FileStore
from toolagent.core.failures import ContentMissingError

_INLINE_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class PackedContent:
    """Either content or a file. A sweep may remove the file until a row names it and holds it (`hold_files`)."""

    content: str | None
    file_id: str | None


async def packed(files: FileStore, value: JsonValue) -> PackedContent:
    """Stores JSON that is too large for a row as a file. Raises as `FileStore.put` does."""
    # ASCII: a program's output may hold characters that neither a database nor UTF-8 takes.
    text = json.dumps(value)
    if len(text) <= _INLINE_BYTES:
        return PackedContent(text, None)
    file = await files.put(_one(text.encode("ascii")), "content.json", "application/json")
    return PackedContent(None, file.file_id)


async def unpacked(files: FileStore, content: str | None, file_id: str | None) -> JsonValue:
    """Raises ContentMissingError, ContentUnavailableError."""
    if file_id is not None:
        file = await files.get(file_id)
        if file is None:
            raise ContentMissingError(file_id)
        async with aclosing(files.read(file)) as pieces:
            content = b"".join([piece async for piece in pieces]).decode("ascii")
    value: JsonValue = json.loads(content or "null")
    return value


async def _one(content: bytes) -> AsyncIterator[bytes]:
    yield content
