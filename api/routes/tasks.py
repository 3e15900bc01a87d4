"""Tasks: calls, batches, and jobs that make or repair tools, followed, cancelled and sent messages."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.documentation import problem_responses
from api.making import Key
from api.ports import Injected
from api.problems import ProblemKind
from api.reading.making_bodies import MessageBody
from api.reading.strict_json import StrictRoute
from api.views.event_streams import LastEventId
from api.views.making import cancelled_making, listing, making_task, spoken_to
from api.views.task_events import followed
from api.views.tasks import cancelled_task, task_with_events
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.http import Task
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.making import TaskNote
from toolagent.contracts.making_views import MakingTask, TaskListing
from toolagent.contracts.task_specs import TaskId, is_making
from toolagent.contracts.tasks import TaskState

router = APIRouter(tags=["tasks"], route_class=StrictRoute)

_RESPONSES = problem_responses(ProblemKind.TASK_NOT_FOUND, ErrorType.UNAVAILABLE)
_LISTED = problem_responses(ProblemKind.INVALID_REQUEST, ErrorType.UNAVAILABLE)
_EVENTS = """retry: 1000

event: note
data: {"task_id":"create_a1b2c3d4","position":1,"at":"2026-03-26T15:09:32Z","kind":"stage","text":"…","payload":null}
id: 1

event: task
data: {"task_id":"create_a1b2c3d4","status":"running","stage":"build","cost_usd":0.02}

: ping
"""


@router.get("/tasks", summary="Tasks that make or repair tools, the newest first", responses=_LISTED)
async def list_tasks(
    dependencies: Injected,
    status: Annotated[TaskState | None, Query(description="Only tasks that are so.")] = None,
    type: Annotated[Literal["github_deploy", "build_tool", "repair_tool"] | None, Query(description="Only tasks of this type.")] = None,
    tool_id: Annotated[ToolId | None, Query(description="Only tasks about this tool.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[TaskId | None, Query(description="Only tasks older than this one: `next` of the page before.")] = None,
) -> TaskListing:
    return await listing(dependencies, status, type, tool_id, limit, before)


@router.get("/tasks/{task_id}", summary="How far a task is, and its result once it has ended", responses=_RESPONSES)
async def get_task(task_id: str, dependencies: Injected) -> Task | MakingTask:
    """A call or batch has its result; a task that makes or repairs a tool has its stages, cost, log and evidence."""
    return await (making_task if is_making(task_id) else task_with_events)(dependencies, task_id)


@router.post(
    "/tasks/{task_id}/cancel",
    summary="Ask a task to end",
    response_model=Task | MakingTask,
    responses={**_RESPONSES, 202: {"model": Task | MakingTask, "description": "It was asked to end, and does so a little later."}},
)
async def cancel_task(task_id: str, dependencies: Injected) -> Response:
    """An ended task stays as it is. A task that makes a tool removes what it has made so far."""
    return await (cancelled_making if is_making(task_id) else cancelled_task)(dependencies, task_id)


@router.post(
    "/tasks/{task_id}/messages",
    summary="Say something to a task that makes or repairs a tool",
    status_code=202,
    responses=problem_responses(
        ProblemKind.MALFORMED_JSON,
        ProblemKind.INVALID_REQUEST,
        ProblemKind.UNSUPPORTED_MEDIA_TYPE,
        ProblemKind.TASK_NOT_FOUND,
        ProblemKind.TASK_ENDED,
        ProblemKind.TOO_MANY_MESSAGES,
        ProblemKind.IDEMPOTENCY_CONFLICT,
        ErrorType.UNAVAILABLE,
    ),
)
async def post_message(task_id: str, message: MessageBody, dependencies: Injected, idempotency_key: Key = None) -> TaskNote:
    """Guidance that the agent reads before its next turn. The answer is the line in the log."""
    return await spoken_to(dependencies, task_id, message.text, idempotency_key)


@router.get(
    "/tasks/{task_id}/events",
    summary="What happens in a task that makes or repairs a tool, as it happens",
    response_class=StreamingResponse,
    responses={
        **problem_responses(ProblemKind.TASK_NOT_FOUND, ProblemKind.INVALID_REQUEST, ErrorType.UNAVAILABLE),
        200: {"description": "Server-sent events", "content": {"text/event-stream": {"example": _EVENTS}}},
        204: {"description": "The task has ended, and everything was sent before."},
    },
)
async def get_events(task_id: str, request: Request, dependencies: Injected, last_event_id: LastEventId = None) -> Response:
    """`note` for each line of the log (continue with its `id`), `task` for each change of the task. Ends with the task."""
    return await followed(dependencies, task_id, last_event_id, request.app.state.streams)
