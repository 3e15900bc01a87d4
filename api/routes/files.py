"""Files in and out."""

from typing import Annotated

from fastapi import APIRouter, File, Header, UploadFile
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.documentation import problem_responses
from api.ports import Injected
from api.problems import ProblemKind
from api.reading.strict_json import StrictRoute
from api.views.files import stored, stored_file
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.records import StoredFile

router = APIRouter(tags=["files"], route_class=StrictRoute)


@router.post(
    "/files",
    summary="Store a file",
    status_code=201,
    response_model=StoredFile,
    responses=problem_responses(
        ProblemKind.MALFORMED_BODY,
        ProblemKind.INVALID_REQUEST,
        ProblemKind.BODY_TOO_LARGE,
        ProblemKind.UNSUPPORTED_MEDIA_TYPE,
        ErrorType.UNAVAILABLE,
    ),
    form_limits={"max_files": 1, "max_fields": 0},
)
async def post_file(file: Annotated[UploadFile, File(description="One file; its name is kept.")], dependencies: Injected) -> Response:
    """A tool's parameter with `format: file-path` takes the `file_id`."""
    return await stored(dependencies.files, file)


_ANSWERS = {
    **problem_responses(ProblemKind.FILE_NOT_FOUND, ProblemKind.RANGE_NOT_SATISFIABLE, ErrorType.UNAVAILABLE),
    206: {"description": "The range that was asked for"},
    304: {"description": "The client has it (If-None-Match)"},
}
_RANGE = Header(alias="Range", description="One range of bytes: `bytes=0-99`, `bytes=100-` or `bytes=-100`.")


@router.get("/files/{file_id}", summary="Fetch a file, or a part of it", response_class=StreamingResponse, responses=_ANSWERS)
async def get_file(file_id: str, request: Request, dependencies: Injected, _range: Annotated[str | None, _RANGE] = None) -> Response:
    """The `ETag` is the SHA-256 of the bytes, which never change. A request for several ranges gets the whole file."""
    return await stored_file(dependencies.files, file_id, request.headers)


@router.head("/files/{file_id}", summary="What a file is", response_class=Response, responses=_ANSWERS)
async def head_file(file_id: str, request: Request, dependencies: Injected, _range: Annotated[str | None, _RANGE] = None) -> Response:
    return await stored_file(dependencies.files, file_id, request.headers, with_body=False)
