"""Calls and batches as tasks: from Temporal while it knows them, then from their records."""

import re
from datetime import UTC, datetime
from http import HTTPStatus

from starlette.responses import Response

from api.errors import Refusal, json_response
from api.ports import Dependencies
from api.problems import ProblemKind
from toolagent.client.failures import AnswerPendingError
from toolagent.contracts.batches import BATCH_ID_PATTERN, BatchedCall
from toolagent.contracts.callbacks import CallbackView
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.http import Task
from toolagent.contracts.identifiers import CALL_ID_PATTERN
from toolagent.contracts.records import CallRecord
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.batches import lost
from toolagent.core.calls.callbacks import view_of_event
from toolagent.core.calls.results import failed, task_state_of


async def task_with_events(dependencies: Dependencies, task_id: str) -> Task:
    """A task with its events. Raises Refusal for an unknown task, AnswerPendingError if Temporal is away and nothing is recorded."""
    view, events = await _task(dependencies, task_id), await dependencies.events.of_call(task_id)
    callback = view_of_event(events) or await _delivery(dependencies, view)
    return Task(**dict(view.model_copy(update={"callback": callback})), events=events)


async def _delivery(dependencies: Dependencies, view: TaskView) -> CallbackView | None:
    """The callback of a task, if there is one, while its end is not recorded."""
    if view.callback is None:
        return None
    known = await dependencies.client.callback(view.task_id)
    return known.model_copy(update={"origin": view.callback.origin}) if known else view.callback


async def cancelled_task(dependencies: Dependencies, task_id: str) -> Response:
    """Answers 202 if the task was asked to end, 200 if it had ended before. Raises as `task_with_events`."""
    task, status = await task_with_events(dependencies, task_id), HTTPStatus.OK
    if task.ended_at is None and await _cancelled(dependencies, task_id):
        task, status = await task_with_events(dependencies, task_id), HTTPStatus.ACCEPTED
    return json_response(task, status)


async def result_of_call(dependencies: Dependencies, call: BatchedCall) -> ToolResult:
    """The result of a call of an ended batch. Raises AnswerPendingError."""
    try:
        view = await _task(dependencies, call.call_id)
    except Refusal:
        return lost(call, datetime.now(UTC))
    return view.result or _goes_on(call)


async def _task(dependencies: Dependencies, task_id: str) -> TaskView:
    if re.fullmatch(BATCH_ID_PATTERN, task_id):
        if (batch := await dependencies.client.batch(task_id).task()) is None:
            raise _unknown(task_id)
        return batch
    if not re.fullmatch(CALL_ID_PATTERN, task_id):
        raise _unknown(task_id)
    try:
        view = await dependencies.client.task(task_id)
        if view is None:
            return await _recorded(dependencies, task_id)
        # The record decides, also before the workflow ends, so that an ended call looks the same from then on.
        record = await dependencies.calls.get(task_id)
        return _with_record(view, record) if record else view
    except AnswerPendingError:
        record = await dependencies.calls.get(task_id)
        if record is None or record.result is None:
            raise
        return _view_of(record)


def _with_record(view: TaskView, record: CallRecord) -> TaskView:
    """The view of a call as its record has it. The record is committed a moment before the workflow ends."""
    if record.result is not None:
        return _view_of(record).model_copy(update={"callback": view.callback})
    # The workflow may wait for another host now, but the tool got the request.
    was_sent = record.sent_at is not None and view.status is TaskState.PENDING
    return view.model_copy(update={"status": TaskState.RUNNING}) if was_sent else view


async def _recorded(dependencies: Dependencies, task_id: str) -> TaskView:
    """A call without a workflow of its id: it has ended, or was started with another workflow id."""
    record = await dependencies.calls.get(task_id)
    if record is None:
        raise _unknown(task_id)
    elsewhere = _other_workflow(record)
    view = await dependencies.client.task(task_id, elsewhere) if elsewhere else None
    return _with_record(view, record) if view else _view_of(record)


async def _cancelled(dependencies: Dependencies, task_id: str) -> bool:
    if re.fullmatch(BATCH_ID_PATTERN, task_id):
        return await dependencies.client.batch(task_id).cancel()
    if await dependencies.client.cancel(task_id):
        return True
    record = await dependencies.calls.get(task_id)
    elsewhere = _other_workflow(record) if record else None
    return elsewhere is not None and await dependencies.client.cancel(task_id, elsewhere)


def _other_workflow(record: CallRecord) -> str | None:
    """Another workflow id of a call that has not ended, if it has one."""
    return record.workflow_id if record.result is None and record.workflow_id not in {"", record.call_id} else None


def _view_of(record: CallRecord) -> TaskView:
    """A call that Temporal does not know any more."""
    result = record.result or _lost(record)
    return TaskView(
        task_id=record.call_id,
        status=task_state_of(result),
        tool_id=record.tool_id,
        started_at=record.created_at,
        ended_at=record.settled_at,
        result=result,
    )


def _lost(record: CallRecord) -> ToolResult:
    message = "Temporal forgot this call before it was settled; whether it had an effect is unknown."
    error = ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details={"outcome": "unknown"})
    return failed(record.call_id, record.tool_id, error, record.created_at)


def _goes_on(call: BatchedCall) -> ToolResult:
    """The result of a call that another request began with the same key, and that goes on though the batch was cancelled."""
    message = f"Another request began this call, and it goes on; its result will be at /tasks/{call.call_id}."
    return failed(call.call_id, call.tool_id, ToolError(type=ErrorType.CANCELLED, message=message), datetime.now(UTC))


def _unknown(task_id: str) -> Refusal:
    return Refusal(
        ProblemKind.TASK_NOT_FOUND,
        f"There is no task {task_id[:128]!r}. GET /tasks lists those that make tools; a call has the id of its answer.",
    )
