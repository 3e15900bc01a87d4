"""Tasks that make or repair tools: shown, cancelled and spoken to."""

import uuid
from datetime import UTC, datetime
from http import HTTPStatus

from pydantic import JsonValue
from starlette.responses import Response

from api.errors import Refusal, bad_field, json_response, unanswered
from api.ports import Dependencies
from api.problems import ProblemKind
from toolagent.client.failures import MakingUnreachableError
from toolagent.contracts.http import ProblemField
from toolagent.contracts.making import Guidance, TaskNote, TaskNoteKind
from toolagent.contracts.making_views import ListedTask, MakingTask, TaskListing
from toolagent.contracts.task_specs import is_making
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import TaskEndedError
from toolagent.core.task_requests import request_key
from toolagent_service.agents.coding_log import log_line
from toolagent_service.agents.loop import MOST_HEARD
from toolagent_service.making.task_views import shown

_LOG_LINES = 40
_UNKNOWN_TO_TEMPORAL = "It was cancelled. Temporal did not know it, so no worker had it."


async def listing(
    dependencies: Dependencies, status: TaskState | None, kind: str | None, tool_id: str | None, limit: int, before: str | None
) -> TaskListing:
    """A page of tasks. Raises Refusal if `before` does not exist."""
    if before is not None and await dependencies.tasks.listed(before) is None:
        message = f"There is no task {before!r}: give the `next` of the page before, or leave it out to begin with the newest."
        raise bad_field("before", message)
    found = await dependencies.tasks.page(status=status, spec_type=kind, tool_id=tool_id, limit=limit + 1, before=before)
    page = found[:limit]
    return TaskListing(tasks=page, next=page[-1].task_id if len(found) > limit else None)


async def making_task(dependencies: Dependencies, task_id: str) -> MakingTask:
    """A task with the end of its log. Raises Refusal for an unknown task."""
    task = await dependencies.tasks.get(task_id) if is_making(task_id) else None
    if task is None:
        raise _unknown(task_id)
    return shown(task, tuple(note.text for note in await dependencies.notes.tail(task_id, _LOG_LINES)))


async def found_task(dependencies: Dependencies, task_id: str) -> ListedTask:
    """Raises Refusal for an unknown task."""
    task = await dependencies.tasks.listed(task_id) if is_making(task_id) else None
    if task is None:
        raise _unknown(task_id)
    return task


async def cancelled_making(dependencies: Dependencies, task_id: str) -> Response:
    """Answers 202 if the task was asked to end, 200 if it had ended before. Raises as `making_task`, and MakingUnreachableError."""
    status = HTTPStatus.OK
    if (await found_task(dependencies, task_id)).ended_at is None:
        status = HTTPStatus.ACCEPTED
        if not await dependencies.client.making.cancel(task_id):
            await dependencies.tasks.settle(task_id, TaskState.CANCELLED, _UNKNOWN_TO_TEMPORAL)
    return json_response(await making_task(dependencies, task_id), status)


async def spoken_to(dependencies: Dependencies, task_id: str, text: str, key: str | None) -> TaskNote:
    """Write a message into the log of a task, and send it to the task. The same key again is the same message.

    Raises Refusal if the task has ended, or has heard the most messages, or the key was used for another one. If the message is written and
    Temporal does not answer, the refusal has the key for sending it again.
    """
    task = await found_task(dependencies, task_id)
    if task.ended_at is not None:
        raise _ended(task_id, task.status.value)
    key = key or uuid.uuid4().hex
    said_id = request_key(task_id, key)
    if await dependencies.notes.count(task_id, TaskNoteKind.GUIDANCE, but=_key(said_id)) >= MOST_HEARD:
        raise Refusal(ProblemKind.TOO_MANY_MESSAGES, f"{MOST_HEARD} messages were said to task {task_id!r} already, and it hears no more.")
    note = await _noted(dependencies, task_id, said_id, text)
    try:
        is_told = await dependencies.client.making.guide(task_id, Guidance(id=said_id, text=text))
    except MakingUnreachableError as away:
        remedy = "It stands in the log, and the task may not have heard it: send it again with this Idempotency-Key, and it is said once."
        raise unanswered(away, remedy, task_id=task_id, idempotency_key=key) from away
    if not is_told:
        raise _ended(task_id, "no worker has it any more")
    return note


async def _noted(dependencies: Dependencies, task_id: str, said_id: str, text: str) -> TaskNote:
    payload: JsonValue = {"id": said_id, "text": text}
    line = log_line(datetime.now(UTC), f"[GUIDANCE] {text}")
    try:
        note = await dependencies.tasks.say(task_id, _key(said_id), line, payload)
    except TaskEndedError as error:
        raise _ended(task_id, error.status) from error
    if note.payload != payload:
        message = "This key was used for other words. Choose a new one."
        errors = (ProblemField(field="Idempotency-Key", message=message),)
        raise Refusal(ProblemKind.IDEMPOTENCY_CONFLICT, message, errors=errors)
    return note


def _key(said_id: str) -> str:
    return f"guidance:{said_id}"


def _unknown(task_id: str) -> Refusal:
    return Refusal(ProblemKind.TASK_NOT_FOUND, f"There is no task {task_id[:128]!r} that makes or repairs a tool; GET /tasks lists them.")


def _ended(task_id: str, how: str) -> Refusal:
    return Refusal(ProblemKind.TASK_ENDED, f"Task {task_id!r} has ended ({how}) and hears nothing any more; make a new one.")
