"""Files in and out."""

from typing import Annotated

from fastapi import APIRouter, File, UploadFile
from starlette.responses import FileResponse, Response

from api.documentation import problem_responses
from api.doors import Behind
from api.file_views import stored, stored_file
from api.problems import ProblemKind
from api.strict_json import StrictRoute
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.records import StoredFile

__all__ = ["router"]

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
async def post_file(file: Annotated[UploadFile, File(description="One file; its name is kept.")], doors: Behind) -> Response:
    """The `file_id` may stand wherever a tool's parameter has `format: file-path`."""
    return await stored(doors.files, file)


@router.get(
    "/files/{file_id}",
    summary="Fetch a file",
    response_class=FileResponse,
    responses=problem_responses(ProblemKind.FILE_NOT_FOUND, ErrorType.UNAVAILABLE),
)
async def get_file(file_id: str, doors: Behind) -> FileResponse:
    return await stored_file(doors.files, file_id)
