"""Bodies of requests as httpx takes them; files are read while they are sent, and from nowhere but the folder of the call."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeAlias

from engine.disk.below import open_below, read_in_pieces
from engine.runtimes.failures import NotSent
from engine.runtimes.http.request_parts import Body, Field, Multipart, Octets, Written
from toolagent.contracts.calls import ErrorType

_IN = "in"
_PARTS = 3
"""Of the path of the folder `in` of a call, below what no tool sees: whose calls, which call, `in`."""

_Part: TypeAlias = tuple[str | None, bytes | BinaryIO, str | None]


@dataclass(frozen=True, slots=True)
class Sent:
    """`headers` are those that the body wants; multipart bodies write their own."""

    content: bytes | AsyncIterator[bytes] | None = None
    files: list[tuple[str, _Part]] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


@contextlib.asynccontextmanager
async def sent(body: Body | None, output_dir: Path) -> AsyncGenerator[Sent]:
    """`output_dir` is that of the call. Raises NotSent (`validation_error`) for a file that is not among those of the call."""
    with contextlib.ExitStack() as opened:
        match body:
            case None:
                yield Sent()
            case Written(content, media_type):
                yield Sent(content, headers={"Content-Type": media_type})
            case Octets(name, path, media_type):
                file = opened.enter_context(await asyncio.to_thread(_opened, name, path, output_dir))
                size = os.fstat(file.fileno()).st_size
                yield Sent(read_in_pieces(file), headers={"Content-Type": media_type, "Content-Length": str(size)})
            case Multipart(fields):
                # Without a part httpx would write no multipart body.
                parts = [(one.name, await _part(one, output_dir, opened)) for one in fields]
                yield Sent(files=parts or [("", (None, b"", None))])


async def _part(one: Field, output_dir: Path, opened: contextlib.ExitStack) -> _Part:
    if not one.is_file:
        return None, one.value.encode("utf-8", "replace"), one.media_type
    file = opened.enter_context(await asyncio.to_thread(_opened, one.name, one.value, output_dir))
    return Path(one.value).name, file, None


def _opened(name: str, path: str, output_dir: Path) -> BinaryIO:
    """The tool may write in the folder of the call: no link is followed. Blocks."""
    root, own = Path(*output_dir.parts[:-_PARTS]), output_dir.with_name(_IN)
    try:
        return open_below(root, *own.relative_to(root).parts, *Path(os.path.normpath(path)).relative_to(own).parts)
    except (OSError, ValueError) as error:
        message = f"The parameter {name!r} names no file of this call. Upload one with POST /files and give its id."
        raise NotSent(ErrorType.VALIDATION_ERROR, message, {"path": f"$.{name}"}) from error
