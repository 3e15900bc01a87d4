"""Typed stubs of the service's workflows, and `call_tool`, for use as child workflows.

Give your Temporal client `ToolAgentPlugin`: it has the data converter for these types. Without it, start
`"InvokeTool"` by name with plain JSON and `result_type=dict`.
"""

import asyncio
from typing import TypedDict

from temporalio import workflow
from temporalio.common import Priority, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, CancelledError, ChildWorkflowError, WorkflowAlreadyStartedError

from toolagent.client import names
from toolagent.contracts.batches import BatchEnd, ToolBatch
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.making import MakeEnd, MakeRequest
from toolagent.contracts.sessions import GroupUse, SessionAccount
from toolagent.contracts.task_specs import BuildTool, GithubDeploy
from toolagent.contracts.task_specs import RepairTool as RepairSpec
from toolagent.core.calls.callbacks import origin_of
from toolagent.core.calls.idempotency import fingerprint, keyed_call_id
from toolagent.core.calls.results import failed
from toolagent.core.task_requests import request_fingerprint, subject_of, task_id_for

__all__ = [
    "ALREADY_MADE",
    "STUBS",
    "ChildCalls",
    "ChildOptions",
    "CreateTool",
    "InvokeTool",
    "RepairTool",
    "RunTools",
    "UseGroup",
    "call_options",
    "call_tool",
    "ended_outside",
    "found_by",
    "made",
    "make_tool",
    "memo_of",
    "use_group",
]

ALREADY_MADE = "already_made"
"""`details.reason` of a `rejected` call whose id another workflow holds; `details.call_id` finds its result."""

_RESERVED = "bodiless_stub"


# An error here means that a worker registered a stub. It fails the workflow; by default, Temporal would retry the task forever.
@workflow.defn(name=names.INVOKE_TOOL, failure_exception_types=[Exception])
class InvokeTool:
    """One call. For `execute_child_workflow(InvokeTool.run, ToolCall(…), task_queue=TASK_QUEUE, …)`. Do not register it."""

    @workflow.run
    async def run(self, _call: ToolCall) -> ToolResult:
        raise _registered(names.INVOKE_TOOL)


@workflow.defn(name=names.RUN_TOOLS, failure_exception_types=[Exception])
class RunTools:
    """A batch; returns ids and states of its calls. Do not register it."""

    @workflow.run
    async def run(self, _batch: ToolBatch) -> BatchEnd:
        raise _registered(names.RUN_TOOLS)


@workflow.defn(name=names.USE_GROUP, failure_exception_types=[Exception])
class UseGroup:
    """A session of a group, from its launch to its stop. Do not register it."""

    @workflow.run
    async def run(self, _use: GroupUse) -> SessionAccount:
        raise _registered(names.USE_GROUP)


@workflow.defn(name=names.CREATE_TOOL, failure_exception_types=[Exception])
class CreateTool:
    """A task that makes a tool; its workflow id is that of the task. Do not register it."""

    @workflow.run
    async def run(self, _request: MakeRequest) -> MakeEnd:
        raise _registered(names.CREATE_TOOL)


@workflow.defn(name=names.REPAIR_TOOL, failure_exception_types=[Exception])
class RepairTool:
    """A task that repairs a tool; its workflow id is that of the task. Do not register it."""

    @workflow.run
    async def run(self, _request: MakeRequest) -> MakeEnd:
        raise _registered(names.REPAIR_TOOL)


STUBS: tuple[type, ...] = (InvokeTool, RunTools, UseGroup, CreateTool, RepairTool)


class _EndsWithParent(TypedDict):
    parent_close_policy: workflow.ParentClosePolicy
    cancellation_type: workflow.ChildWorkflowCancellationType


class ChildOptions(_EndsWithParent):
    """Options for starting a call as a child workflow."""

    id: str
    task_queue: str
    id_reuse_policy: WorkflowIDReusePolicy
    memo: dict[str, str]
    search_attributes: TypedSearchAttributes
    static_summary: str
    priority: Priority


# A child is cancelled when its parent ends, so that it can settle; and what it started has stopped only when it has ended.
_ENDS_WITH_PARENT: _EndsWithParent = {
    "parent_close_policy": workflow.ParentClosePolicy.REQUEST_CANCEL,
    "cancellation_type": workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
}


def call_options(
    call: ToolCall,
    call_id: str,
    reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.REJECT_DUPLICATE,
    *,
    task_queue: str = names.TASK_QUEUE,
) -> ChildOptions:
    """Options with which the call is cancelled and settled when its parent ends. Terminated, it would be without a record."""
    return {
        "id": call_id,
        "task_queue": task_queue,
        "id_reuse_policy": reuse,
        **_ENDS_WITH_PARENT,
        "memo": memo_of(fingerprint(call), call.callback_url),
        "search_attributes": found_by("call", call.tool_id, call.caller.caller_id),
        "static_summary": call.tool_id,
        "priority": Priority(priority_key=call.priority),
    }


async def call_tool(call: ToolCall, *, call_id: str | None = None, task_queue: str = names.TASK_QUEUE) -> ToolResult:
    """Make a call from a workflow and wait for its result. Errors of the call are in the result, not raised.

    The id follows from the idempotency key where there is one, else it is `call_id` (of the form `call-…`) or a new one. A key is
    needed only to share a call with others: this workflow's own history already keeps it from being made twice. When another
    workflow holds the id, the result is `rejected` with `details.reason` `already_made`. Raises asyncio.CancelledError, once the
    call has ended, when this workflow is cancelled.
    """
    call_id = keyed_call_id(call) or call_id or f"call-{workflow.uuid4().hex}"
    task = asyncio.current_task()
    asked_before = task.cancelling() if task else 0
    try:
        result = await made(call, call_id, task_queue=task_queue)
    except WorkflowAlreadyStartedError:
        message = f"Call {call_id} was made by another workflow; its result is under that id."
        error = ToolError(type=ErrorType.REJECTED, message=message, details={"reason": ALREADY_MADE, "call_id": call_id})
        return failed(call_id, call.tool_id, error, workflow.now())
    if task and task.cancelling() > asked_before:
        # The call ended by itself, but our own cancellation must not get lost.
        raise asyncio.CancelledError
    return result


async def made(
    call: ToolCall,
    call_id: str,
    reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.REJECT_DUPLICATE,
    *,
    task_queue: str = names.TASK_QUEUE,
) -> ToolResult:
    """Run the call under this id; returns its result, also if it was cancelled. Raises WorkflowAlreadyStartedError."""
    options = call_options(call, call_id, reuse, task_queue=task_queue)
    try:
        handle = await workflow.start_child_workflow(InvokeTool.run, call, **options)
        return await handle
    except ChildWorkflowError as error:
        return failed(call_id, call.tool_id, ended_outside(error.cause), workflow.now())


async def use_group(use: GroupUse, *, task_queue: str = names.TASK_QUEUE) -> SessionAccount:
    """Launch a session of a group from a workflow, make its calls, and wait until it has stopped.

    However this workflow ends, also terminated, the session is stopped. Raises ChildWorkflowError for a group that is not there.
    """
    return await workflow.execute_child_workflow(
        UseGroup.run,
        use,
        id=f"use-{use.group_id}-{workflow.uuid4().hex}",
        task_queue=task_queue,
        static_summary=use.group_id,
        **_ENDS_WITH_PARENT,
    )


async def make_tool(spec: GithubDeploy | BuildTool | RepairSpec, description: str = "", *, task_queue: str = names.TASK_QUEUE) -> MakeEnd:
    """Have a tool made or repaired, from a workflow, and wait for the end of the task.

    Raises ChildWorkflowError for a task that was ended from outside. Raises asyncio.CancelledError if this workflow is cancelled, after the
    task has cleaned up and ended too.
    """
    request = MakeRequest(task_id=task_id_for(spec, workflow.uuid4().hex, 0), spec=spec, description=description)
    return await workflow.execute_child_workflow(
        RepairTool.run if isinstance(spec, RepairSpec) else CreateTool.run,
        request,
        id=request.task_id,
        task_queue=task_queue,
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        memo={names.FINGERPRINT: request_fingerprint(request)},
        search_attributes=found_by(spec.type, subject_of(spec)),
        static_summary=f"{spec.type} {subject_of(spec)}",
        **_ENDS_WITH_PARENT,
    )


class ChildCalls:
    """Runs calls as child workflows, for a `ToolSubAgent` inside a workflow."""

    def __init__(self, task_queue: str = names.TASK_QUEUE) -> None:
        self._task_queue = task_queue

    async def run(self, call: ToolCall) -> ToolResult:
        return await call_tool(call, task_queue=self._task_queue)


def _registered(name: str) -> ApplicationError:
    message = f"A worker registered the stub of {name}, which has no body. Register your own workflows only, on a task queue of your own."
    return ApplicationError(message, type=_RESERVED, non_retryable=True)


def ended_outside(cause: BaseException | None) -> ToolError:
    """The error of a call whose workflow was cancelled, or ended from outside (terminated, timed out). Then its outcome is unknown."""
    if isinstance(cause, CancelledError):
        return ToolError(type=ErrorType.CANCELLED, message="The call was cancelled.")
    message = f"The call was ended from outside before it was settled: {cause}."
    return ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details={"outcome": "unknown"})


def memo_of(fingerprint: str, callback_url: str | None) -> dict[str, str]:
    """The memo of a call or a batch."""
    return {names.FINGERPRINT: fingerprint, **({names.CALLBACK: origin_of(callback_url)} if callback_url else {})}


def found_by(task_type: str, tool_id: str | None = None, caller_id: str | None = None) -> TypedSearchAttributes:
    """The search attributes of a workflow."""
    named = ((names.TOOL_ID, tool_id), (names.TASK_TYPE, task_type), (names.CALLER, caller_id))
    return TypedSearchAttributes([SearchAttributePair(key, names.searchable(value)) for key, value in named if value])
