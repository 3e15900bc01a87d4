"""Having tools made, repaired and taken back."""

from typing import Annotated

from fastapi import APIRouter, Body
from starlette.responses import Response

from api.documentation import JSON_BODY, answer_of, problem_responses
from api.making import TakenRepair, TakenRequest, submitted
from api.ports import Injected
from api.problems import ProblemKind
from api.reading.making_bodies import RollbackBody
from api.reading.strict_json import StrictRoute
from api.views.versions import rolled_back
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.making_views import TaskSubmitted
from toolagent.contracts.tasks import TaskState
from toolagent.contracts.versions import ToolVersions

router = APIRouter(tags=["making"], route_class=StrictRoute)

_BODY_PROBLEMS = (
    *JSON_BODY,
    ProblemKind.IDEMPOTENCY_CONFLICT,
    ProblemKind.NOT_REPAIRABLE,
    ProblemKind.REPAIR_RUNNING,
    ErrorType.TOOL_NOT_FOUND,
    ErrorType.UNAVAILABLE,
)


def _accepted(task_id: str) -> dict[str, object]:
    example = TaskSubmitted(task_id=task_id, status=TaskState.PENDING, message="Task submitted")
    return answer_of("The task goes on by itself under this id (also in `Location`).", example, TaskSubmitted)


@router.post(
    "/create_tool",
    summary="Have a tool made",
    status_code=202,
    response_model=TaskSubmitted,
    responses={**problem_responses(*_BODY_PROBLEMS), 202: _accepted("create_a1b2c3d4")},
)
async def create_tool(taken: TakenRequest, dependencies: Injected) -> Response:
    """From a repository, or from a description. Requests that cannot begin are refused; later errors are in the task."""
    return await submitted(dependencies, taken)


@router.post(
    "/tools/{tool_id}/repair",
    summary="Have a tool repaired",
    status_code=202,
    response_model=TaskSubmitted,
    responses={**problem_responses(*_BODY_PROBLEMS), 202: _accepted("repair_a1b2c3d4")},
)
async def repair_tool(taken: TakenRepair, dependencies: Injected) -> Response:
    """A new version is built. The old one stays until the new one has passed its checks. The body is optional."""
    return await submitted(dependencies, taken)


@router.post(
    "/tools/{tool_id}/rollback",
    summary="Return to the version that was active before",
    responses=problem_responses(
        ProblemKind.MALFORMED_JSON,
        ProblemKind.INVALID_REQUEST,
        ProblemKind.UNSUPPORTED_MEDIA_TYPE,
        ProblemKind.NO_EARLIER_VERSION,
        ErrorType.TOOL_NOT_FOUND,
        ErrorType.UNAVAILABLE,
    ),
)
async def roll_back(tool_id: str, dependencies: Injected, body: Annotated[RollbackBody | None, Body()] = None) -> ToolVersions:
    """The version left cannot be called until it is activated again; running calls finish on it. Repeating it goes further back."""
    return await rolled_back(dependencies, tool_id, body.from_version if body else None)
