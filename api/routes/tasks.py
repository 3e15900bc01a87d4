"""Following and cancelling calls."""

from fastapi import APIRouter
from starlette.responses import Response

from api.documentation import problem_responses
from api.doors import Behind
from api.problems import ProblemKind
from api.task_views import cancelled_task, task_with_events
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.http import Task

__all__ = ["router"]

router = APIRouter(tags=["tasks"])

_RESPONSES = problem_responses(ProblemKind.TASK_NOT_FOUND, ErrorType.UNAVAILABLE)


@router.get("/tasks/{task_id}", summary="How far a call is, and its result once it has ended", responses=_RESPONSES)
async def get_task(task_id: str, doors: Behind) -> Task:
    return await task_with_events(doors, task_id)


@router.post(
    "/tasks/{task_id}/cancel",
    summary="Ask a call to end",
    response_model=Task,
    responses={**_RESPONSES, 202: {"model": Task, "description": "It was asked to end, and does so a little later."}},
)
async def cancel_task(task_id: str, doors: Behind) -> Response:
    """A call that has ended stays as it is."""
    return await cancelled_task(doors, task_id)
