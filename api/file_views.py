"""Files in and out."""

import asyncio
import re
from collections.abc import AsyncIterator

from fastapi import UploadFile
from starlette.responses import FileResponse, Response

from api.errors import Refusal
from api.ports import Files
from api.problems import ProblemKind
from toolagent.contracts.identifiers import FILE_ID_PATTERN

__all__ = ["stored", "stored_file"]

_CHUNK = 1 << 20
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}", re.IGNORECASE)
# What somebody uploaded is never a page of ours: browsers save it, do not guess its type, and run nothing in it.
_HARMLESS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}


async def stored(files: Files, upload: UploadFile) -> Response:
    """201 with the stored file. Raises FileTooLargeError."""
    kind = (upload.content_type or "").partition(";")[0].strip()
    file = await files.put(_chunks(upload), upload.filename or "file", kind if _MEDIA_TYPE.fullmatch(kind) else None)
    return Response(file.model_dump_json(), 201, {"Location": f"/files/{file.file_id}"}, "application/json")


async def stored_file(files: Files, file_id: str) -> FileResponse:
    """The bytes of a file. Raises Refusal when there is none."""
    file = await files.get(file_id) if re.fullmatch(FILE_ID_PATTERN, file_id) else None
    if file is None:
        raise Refusal(ProblemKind.FILE_NOT_FOUND, f"There is no file {file_id[:128]!r}.")
    path = files.path(file)
    if not await asyncio.to_thread(path.is_file):
        raise Refusal(ProblemKind.FILE_NOT_FOUND, f"The file {file_id} is known, but its bytes are gone from the store.")
    return FileResponse(path, headers=_HARMLESS, media_type=file.media_type, filename=file.name)


async def _chunks(upload: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await upload.read(_CHUNK):
        yield chunk
