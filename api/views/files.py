"""Files in and out."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from urllib.parse import quote

import structlog
from fastapi import UploadFile
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from api.errors import Refusal, json_response
from api.ports import Files
from api.problems import ProblemKind
from toolagent.contracts.identifiers import FILE_ID_PATTERN
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentMissingError, StoreUnavailableError

_log = structlog.stdlib.get_logger(__name__)
_CHUNK = 1 << 20
_MEDIA_TYPE = re.compile(r"(?=.{3,127}$)[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}", re.IGNORECASE)
# Browsers save an uploaded file, do not guess its type, and run nothing in it.
_HARMLESS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}

_RANGE = re.compile(r"bytes=\s*(\d{0,20})\s*-\s*(\d{0,20})\s*", re.IGNORECASE)


async def stored(files: Files, upload: UploadFile) -> Response:
    """Answers 201 with the stored file. Raises FileTooLargeError, StoreFullError, ContentUnavailableError."""
    kind = (upload.content_type or "").partition(";")[0].strip()
    file = await files.put(_chunks(upload), upload.filename or "file", kind if _MEDIA_TYPE.fullmatch(kind) else None)
    return json_response(file, 201, {"Location": f"/files/{file.file_id}"})


async def stored_file(files: Files, file_id: str, headers: Headers, *, with_body: bool = True) -> Response:
    """Answers with a file or the requested range of its bytes. Raises Refusal, ContentDamagedError.

    Damage found after the first bytes were sent closes the connection early.
    """
    file = await files.get(file_id) if re.fullmatch(FILE_ID_PATTERN, file_id) else None
    if file is None:
        raise Refusal(ProblemKind.FILE_NOT_FOUND, f"There is no file {file_id[:128]!r}. Upload it with POST /files.")
    about = {**_HARMLESS, "ETag": f'"{file.sha256}"', "Accept-Ranges": "bytes"}
    if _is_current(headers.get("if-none-match", ""), about["ETag"]):
        return Response(status_code=304, headers=about)
    if not await files.has_content(file):
        raise _gone(file)
    part = _part(file, headers, about["ETag"])
    if part is not None:
        about["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{file.size}"
    status, sent = (200, range(file.size)) if part is None else (206, part)
    about |= {"Content-Length": str(len(sent)), "Content-Disposition": _disposition(file.name)}
    if not with_body:
        return Response(status_code=status, headers=about, media_type=file.media_type)
    try:
        pieces = await _begun(files.read(file, sent.start, len(sent)))
    except ContentMissingError as error:
        raise _gone(file) from error
    return _Download(pieces, status, about, file.media_type)


class _Download(StreamingResponse):
    """Ends early if the file cannot be read on. The server then closes the connection; the client sees it by `Content-Length`."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except (ContentMissingError, StoreUnavailableError) as error:
            _log.error("download_broken_off", reason=str(error))


async def _begun(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Reads the first piece, so that errors up to there can still be answered with a status."""
    first = await anext(pieces, b"")

    async def whole() -> AsyncGenerator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return whole()


def _gone(file: StoredFile) -> Refusal:
    return Refusal(ProblemKind.FILE_NOT_FOUND, f"The file {file.file_id} is known, but its bytes are gone from the store.")


def _part(file: StoredFile, headers: Headers, etag: str) -> range | None:
    """The requested bytes. None for the whole file: without a range that can be read, with several, or with another file in `If-Range`.

    Raises Refusal if the file has no byte of the range.
    """
    header = headers.get("range", "")
    found = _RANGE.fullmatch(header.strip())
    if found is None or found.groups() == ("", "") or headers.get("if-range", etag).strip() != etag:
        return None
    first, last = found.groups()
    if first and last and int(last) < int(first):
        return None
    start = int(first) if first else max(file.size - int(last), 0)
    end = min(int(last) + 1, file.size) if first and last else file.size
    if start >= end:
        detail = f"The range {header[:100]!r} is beyond the end of the file, which has {file.size} bytes."
        raise Refusal(ProblemKind.RANGE_NOT_SATISFIABLE, detail, headers={"Content-Range": f"bytes */{file.size}"})
    return range(start, end)


def _disposition(name: str) -> str:
    quoted = quote(name, safe="")
    return f'attachment; filename="{name}"' if quoted == name else f"attachment; filename*=utf-8''{quoted}"


async def _chunks(upload: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await upload.read(_CHUNK):
        yield chunk


def _is_current(header: str, etag: str) -> bool:
    """Whether a list of entity tags (If-None-Match) has this one, or is `*`."""
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags
