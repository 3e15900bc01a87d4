"""Files in and out."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from urllib.parse import quote

import structlog
from fastapi import UploadFile
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from api.errors import Refusal
from api.ports import Files
from api.problems import ProblemKind
from toolagent.contracts.identifiers import FILE_ID_PATTERN
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentMissingError, StoreUnavailableError

_log = structlog.stdlib.get_logger(__name__)
_CHUNK = 1 << 20
_MEDIA_TYPE = re.compile(r"(?=.{3,127}$)[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}", re.IGNORECASE)
# What somebody uploaded is never a page of ours: browsers save it, do not guess its type, and run nothing in it.
_HARMLESS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}

_RANGE = re.compile(r"bytes=\s*(\d{0,20})\s*-\s*(\d{0,20})\s*", re.IGNORECASE)


async def stored(files: Files, upload: UploadFile) -> Response:
    """201 with the stored file. Raises FileTooLargeError, StoreFullError, ContentUnavailableError."""
    kind = (upload.content_type or "").partition(";")[0].strip()
    file = await files.put(_chunks(upload), upload.filename or "file", kind if _MEDIA_TYPE.fullmatch(kind) else None)
    return Response(file.model_dump_json(), 201, {"Location": f"/files/{file.file_id}"}, "application/json")


async def stored_file(files: Files, file_id: str, headers: Headers, *, with_body: bool = True) -> Response:
    """The bytes of a file, or the range that was asked for. Raises Refusal when there are none, ContentDamagedError.

    Damage that is found after the first bytes have left closes the connection before the last ones.
    """
    file = await files.get(file_id) if re.fullmatch(FILE_ID_PATTERN, file_id) else None
    if file is None:
        raise Refusal(ProblemKind.FILE_NOT_FOUND, f"There is no file {file_id[:128]!r}. Upload it with POST /files.")
    about = {**_HARMLESS, "ETag": f'"{file.sha256}"', "Accept-Ranges": "bytes"}
    if is_current(headers.get("if-none-match"), about["ETag"]):
        return Response(status_code=304, headers=about)
    if not await files.has_content(file):
        raise _gone(file)
    part = _part(file, headers, about["ETag"])
    if part is not None:
        about["Content-Range"] = part.content_range(file.size)
    start, length = (part.start, part.length) if part else (0, file.size)
    about |= {"Content-Length": str(length), "Content-Disposition": _disposition(file.name)}
    status = 206 if part else 200
    if not with_body:
        return Response(status_code=status, headers=about, media_type=file.media_type)
    try:
        pieces = await _begun(files.read(file, start, length))
    except ContentMissingError as error:
        raise _gone(file) from error
    return _Download(pieces, status, about, file.media_type)


class _Download(StreamingResponse):
    """What goes wrong on the way ends it without its end: the server closes the connection, and `Content-Length` tells the client."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except (ContentMissingError, StoreUnavailableError) as error:
            _log.error("download_broken_off", reason=str(error))


async def _begun(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """With the first piece read: what is wrong by then can still be an answer."""
    first = await anext(pieces, b"")

    async def whole() -> AsyncGenerator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return whole()


def _gone(file: StoredFile) -> Refusal:
    return Refusal(ProblemKind.FILE_NOT_FOUND, f"The file {file.file_id} is known, but its bytes are gone from the store.")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`length` bytes from `start`."""

    start: int
    length: int

    def content_range(self, size: int) -> str:
        return f"bytes {self.start}-{self.start + self.length - 1}/{size}"


def _part(file: StoredFile, headers: Headers, etag: str) -> ByteRange | None:
    """None: all of it. A client that continues a file (If-Range) that has become another one gets all of that one."""
    if headers.get("if-range", etag).strip() != etag:
        return None
    try:
        return range_of(headers.get("range"), file.size)
    except UnsatisfiableRangeError as error:
        detail = f"The range {headers.get('range', '')[:100]!r} is beyond the end of the file, which has {file.size} bytes."
        raise Refusal(ProblemKind.RANGE_NOT_SATISFIABLE, detail, headers={"Content-Range": f"bytes */{file.size}"}) from error


def _disposition(name: str) -> str:
    quoted = quote(name, safe="")
    return f'attachment; filename="{name}"' if quoted == name else f"attachment; filename*=utf-8''{quoted}"


async def _chunks(upload: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await upload.read(_CHUNK):
        yield chunk


class UnsatisfiableRangeError(ValueError):
    """No byte of the file is in the range."""


def range_of(header: str | None, size: int) -> ByteRange | None:
    """The range of a Range header; None for the whole file, also when the header cannot be read or names several.

    Raises UnsatisfiableRangeError.
    """
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        length = min(int(last), size)
        return _require(ByteRange(size - length, length), size)
    if last and int(last) < int(first):
        return None
    end = min(int(last) + 1 if last else size, size)
    return _require(ByteRange(int(first), end - int(first)), size)


def is_current(header: str | None, etag: str) -> bool:
    """Whether a list of entity tags (If-None-Match) has this one, or is `*`."""
    if header is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


def _require(wanted: ByteRange, size: int) -> ByteRange:
    if wanted.start >= size or wanted.length <= 0:
        raise UnsatisfiableRangeError
    return wanted
