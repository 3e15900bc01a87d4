"""Calls over Temporal, for the API and for agents with their own connection."""

import uuid
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import Priority, WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client import names
from toolagent.client.batches import Batches, pending
from toolagent.client.call_ids import new_call_id
from toolagent.client.chats import Chats
from toolagent.client.child import ended_outside, found_by, memo_of
from toolagent.client.failures import AnswerPendingError, CallRefusedError, ControlFailedError
from toolagent.client.handles import BatchHandle, CallHandle
from toolagent.client.making import Making
from toolagent.client.patience import SilenceError, described, if_known, is_away, patiently, reached
from toolagent.client.sessions import Sessions
from toolagent.client.task_views import delivery_of, view_of
from toolagent.contracts.batches import BatchEnd, BatchResult, CallLook, LookState, ToolBatch
from toolagent.contracts.callbacks import CallbackView
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent.contracts.tasks import TaskView
from toolagent.core.calls.callbacks import delivery_id
from toolagent.core.calls.idempotency import call_id_of_workflow, fingerprint, keyed_call_id
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, NOT_ADMITTED, failed, key_conflict, reason_of, task_state_of

__all__ = ["ToolAgentClient", "is_away"]

START_TIMEOUT = timedelta(seconds=5)
CONTROL_TIMEOUT = timedelta(minutes=15)

_ATTEMPTS = 5
"""How often a freed id is tried, if another caller is quicker each time."""


class ToolAgentClient:
    """Starts, awaits, follows and cancels calls.

    `patience_s`: seconds that a waiting caller waits for a silent Temporal server. `making` has the tasks that make tools,
    `sessions` those of groups, `chats` conversations.
    """

    def __init__(self, client: Client, *, patience_s: float = 60.0) -> None:
        self._client = client
        self._patience_s = patience_s
        self._batches = Batches(client, self, patience_s)
        self.making = Making(client)
        self.sessions = Sessions(client)
        self.chats = Chats(client)

    async def run(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> ToolResult:
        """Make the call and wait for its result. `is_new` as in `start`. Raises CallRefusedError, AnswerPendingError."""
        return await (await self.start(call, call_id, is_new=is_new)).result()

    async def start(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> CallHandle:
        """Start the call durably.

        The id follows from the idempotency key where there is one, else it is `call_id` or a new one. The same id again is the
        same call. `is_new`: nobody else can have this id. Raises CallRefusedError for another call under the same id, and for one
        that Temporal does not take; AnswerPendingError when Temporal does not answer.
        """
        call_id = keyed_call_id(call) or call_id
        is_new, call_id = is_new or call_id is None, call_id or new_call_id()
        reuse = WorkflowIDReusePolicy.REJECT_DUPLICATE
        for _ in range(_ATTEMPTS):
            try:
                await self._start(call, call_id, reuse, is_new=is_new)
            except WorkflowAlreadyStartedError:
                look = await self.look(call, call_id)
                if look.state is LookState.CONFLICT:
                    break
                if look.state is LookState.FREE:
                    # The workflow that holds the id was itself refused, so the id is free. Another caller may be quicker.
                    reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE
                    continue
            return CallHandle(call_id, call.tool_id, calls=self)
        raise CallRefusedError(key_conflict(call_id, call.tool_id, datetime.now(UTC)))

    def handle(self, call_id: str) -> CallHandle:
        """The handle of a started call."""
        return CallHandle(call_id, calls=self)

    async def result(self, call_id: str, tool_id: str = "") -> ToolResult:
        """Wait for the end of a call.

        Raises AnswerPendingError if Temporal is silent for `patience_s`, or knows no workflow of the call. Then a front door may have made
        the call in its lane: ask the service.
        """
        try:
            return await patiently(self._handle(call_id).result, is_away, self._patience_s)
        except SilenceError as error:
            message = f"Temporal has been away for {self._patience_s:g} s; the call goes on when it is back. Ask for it by its id."
            raise pending(call_id, message, tool_id) from error
        except WorkflowFailureError as error:
            return failed(call_id, tool_id, ended_outside(error.cause), datetime.now(UTC))
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            message = f"Temporal has no workflow {call_id}. If it was made in a lane, the service has its result: GET /tasks/{call_id}."
            raise pending(call_id, message, tool_id) from error

    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None:
        """State of a call; None when Temporal does not know it. Raises AnswerPendingError.

        Give `workflow_id` for a call that was started under another workflow id; its record has it.
        """
        handle = self._handle(workflow_id or call_id)
        with _reached(call_id):
            description = await described(handle)
        if description is None:
            return None
        if call_id_of_workflow(description.id, description.raw_description.workflow_execution_info.first_run_id) != call_id:
            return None  # the id was used again, for another call
        view = (await view_of(description, self._client.data_converter)).model_copy(update={"task_id": call_id})
        if view.ended_at is None:
            return view
        result = await self.result(handle.id, view.tool_id or "")
        if result.call_id != call_id or description.status is not WorkflowExecutionStatus.COMPLETED:
            result = result.model_copy(update={"call_id": call_id, "executed_at": view.ended_at})
        return view.model_copy(update={"result": result, "status": task_state_of(result)})

    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:
        """Cancel a call; False if Temporal does not know it. An ended call stays unchanged. Raises AnswerPendingError."""
        if workflow_id is not None and await self.task(call_id, workflow_id) is None:
            return False
        with _reached(call_id), if_known():
            await self._handle(workflow_id or call_id).cancel(rpc_timeout=START_TIMEOUT)
            return True
        return False

    async def callback(self, task_id: str) -> CallbackView | None:
        """State of the callback of this call or batch; None when it has not begun. Raises AnswerPendingError."""
        event_id = f"{task_id}:ended"
        with _reached(task_id):
            description = await described(self._client.get_workflow_handle(delivery_id(event_id)))
        return delivery_of(description, event_id) if description else None

    async def look(self, call: ToolCall, call_id: str) -> CallLook:
        """The state of the call under this id. Raises AnswerPendingError."""
        with _reached(call_id):
            description = await described(self._handle(call_id))
        if description is None:
            return CallLook(state=LookState.FREE)
        # A workflow without our memo has nothing to compare.
        is_same = await description.memo_value(names.FINGERPRINT, "", type_hint=str) == fingerprint(call)
        if description.close_time is None:
            return CallLook(state=LookState.RUNNING if is_same else LookState.CONFLICT)
        result = await self.result(call_id, call.tool_id)
        if is_same and reason_of(result) != NOT_ADMITTED:
            return CallLook(state=LookState.ENDED, status=result.status, error_type=result.error_type, reason=reason_of(result))
        # If the workflow that holds the id was itself refused, the record has the call that the id belongs to, if there is one.
        was_refused = reason_of(result) in {IDEMPOTENCY_CONFLICT, NOT_ADMITTED}
        return CallLook(state=LookState.FREE if was_refused else LookState.CONFLICT)

    async def run_batch(self, batch: ToolBatch, batch_id: str | None = None) -> BatchResult:
        """Make all calls of a batch and wait for their results. Raises CallRefusedError, AnswerPendingError."""
        return await (await self.start_batch(batch, batch_id)).result()

    async def start_batch(self, batch: ToolBatch, batch_id: str | None = None) -> BatchHandle:
        """Start a batch durably. Ids and errors as in `start`."""
        return self.batch(await self._batches.start(batch, batch_id))

    def batch(self, batch_id: str) -> BatchHandle:
        """The handle of a started batch."""
        return BatchHandle(batch_id, wait=self._batches.result, look=self._batches.task, stop=self.cancel)

    async def batch_end(self, batch_id: str) -> BatchEnd:
        """Wait for the end of a batch: ids and states of its calls. Raises AnswerPendingError."""
        return await self._batches.end(batch_id)

    async def control(self, control: ToolControl) -> ToolRoute:
        """Start, stop or destroy a tool on its host and wait until that is done. Raises ControlFailedError."""
        control_id = f"control-{uuid.uuid4().hex[:8]}"
        try:
            with reached(lambda reason: ControlFailedError(ToolError(type=ErrorType.UNAVAILABLE, message=reason))):
                return await self._client.execute_workflow(
                    names.CONTROL_TOOL,
                    control,
                    id=control_id,
                    task_queue=names.TASK_QUEUE,
                    execution_timeout=CONTROL_TIMEOUT,
                    result_type=ToolRoute,
                    static_summary=f"{control.action.value} {control.tool_id}",
                    search_attributes=found_by("control", control.tool_id),
                )
        except WorkflowFailureError as error:
            raise ControlFailedError(_error_of_control(error)) from error

    def _handle(self, call_id: str) -> WorkflowHandle[object, ToolResult]:
        return self._client.get_workflow_handle(call_id, result_type=ToolResult)

    async def _start(self, call: ToolCall, call_id: str, reuse: WorkflowIDReusePolicy, *, is_new: bool) -> None:
        def unanswered(reason: str) -> AnswerPendingError:
            return pending(call_id, f"{reason} Ask by its id whether the call was accepted.", call.tool_id)

        with reached(unanswered), _taken(call_id, call.tool_id):
            await self._client.start_workflow(
                names.INVOKE_TOOL,
                call,
                id=call_id,
                task_queue=names.TASK_QUEUE,
                id_reuse_policy=reuse,
                memo=memo_of(fingerprint(call), call.callback_url) | ({names.NEW: "yes"} if is_new else {}),
                search_attributes=found_by("call", call.tool_id, call.caller.caller_id),
                static_summary=call.tool_id,
                request_eager_start=True,
                rpc_timeout=START_TIMEOUT,
                priority=Priority(priority_key=call.priority),
            )


def _reached(call_id: str) -> AbstractContextManager[None]:
    return reached(lambda reason: pending(call_id, reason))


@contextmanager
def _taken(call_id: str, tool_id: str) -> Generator[None]:
    """Raises CallRefusedError for a call that Temporal never accepts: larger than the server allows, for example."""
    try:
        yield
    except RPCError as error:
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
        said = f"Temporal does not take this call: {error.message}"
        wrong = ToolError(type=ErrorType.VALIDATION_ERROR, message=said, details={"sent": False})
        raise CallRefusedError(failed(call_id, tool_id, wrong, datetime.now(UTC))) from error


def _error_of_control(error: WorkflowFailureError) -> ToolError:
    cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
    if isinstance(cause, ApplicationError) and cause.type in set(ErrorType):
        return ToolError(type=ErrorType(cause.type), message=cause.message, details=cause.details[0] if cause.details else None)
    return ToolError(type=ErrorType.UNAVAILABLE, message=f"The tool's host did not do it: {cause}.")
