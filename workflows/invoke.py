"""One call: admit, call, settle. A call of its own and a step of a group session are this same function."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType, is_cancelled_exception

from toolagent.client import stubs
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.steps import (
    AdmitRequest,
    Answered,
    CallOutcome,
    CallPlan,
    CallRequest,
    Finished,
    Placement,
    PlaceRequest,
    SettleRequest,
)
from toolagent.core.results import failed
from workflows import options

__all__ = ["invoke"]


async def invoke(call: ToolCall, call_id: str) -> ToolResult:
    """Make one call. What the tool or the caller got wrong is in the result; cancelling gives a result too."""
    info = workflow.info()
    try:
        admission = await workflow.execute_local_activity(
            stubs.admit,
            AdmitRequest(call=call, call_id=call_id, workflow_id=info.workflow_id, run_id=info.run_id),
            **options.admit(call.tool_id),
        )
    except (asyncio.CancelledError, ActivityError) as error:
        return failed(call_id, call.tool_id, _not_admitted(error), workflow.now())
    if isinstance(admission, Answered):
        return admission.result
    outcome = await _call(admission.plan)
    return await _settle(SettleRequest(plan=admission.plan, outcome=outcome, workflow_id=info.workflow_id, run_id=info.run_id))


async def _call(plan: CallPlan) -> Finished:
    try:
        if plan.fast:
            outcome = await workflow.execute_local_activity(
                stubs.call_tool, CallRequest(plan=plan, only_if_running=True), **options.fast_call(plan)
            )
            if isinstance(outcome, Finished):
                return outcome
        return await _call_on_queue(plan)
    except (asyncio.CancelledError, ActivityError) as error:
        return Finished(error=_not_finished(plan, error))


async def _call_on_queue(plan: CallPlan) -> Finished:
    give_up_at = workflow.now() + timedelta(seconds=plan.queue_timeout_s)
    silent: tuple[str, ...] = ()
    while True:
        try:
            outcome: CallOutcome = await workflow.execute_activity(stubs.call_tool, CallRequest(plan=plan), **options.call(plan))
        except ActivityError as error:
            # It never started, so it may safely be placed elsewhere; a host that is only busy is placed again and waited for.
            if not _never_started(error) or workflow.now() >= give_up_at:
                raise
            silent = (*silent, plan.placement.host) if plan.placement.host else silent
            placement: Placement = await workflow.execute_local_activity(
                stubs.place, PlaceRequest(plan=plan, avoid_hosts=silent), **options.place(plan)
            )
            plan = plan.model_copy(update={"placement": placement})
        else:
            if isinstance(outcome, Finished):
                return outcome
            raise ApplicationError("An ordinary call was answered with not_running.", non_retryable=True)


async def _settle(request: SettleRequest) -> ToolResult:
    """What was done is written down even when the call is cancelled meanwhile."""
    while True:
        try:
            settled = await workflow.execute_local_activity(stubs.settle, request, **options.settle(request.plan))
            return settled.model_copy(update={"result": request.outcome.output}) if settled.status == "success" else settled
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise


def _not_admitted(error: BaseException) -> ToolError:
    if is_cancelled_exception(error):
        return ToolError(type=ErrorType.CANCELLED, message="The call was cancelled before it was made.", details={"sent": False})
    return ToolError(type=ErrorType.UNAVAILABLE, message=f"The call could not be admitted: {_cause(error)}", details={"sent": False})


def _not_finished(plan: CallPlan, error: BaseException) -> ToolError:
    if is_cancelled_exception(error):
        return ToolError(type=ErrorType.CANCELLED, message="The call was cancelled before a worker took it.", details={"sent": False})
    if _never_started(error):
        message = f"No worker took the call from queue {plan.placement.queue!r} within {plan.queue_timeout_s:g} s."
        return ToolError(type=ErrorType.UNAVAILABLE, message=message, details={"sent": False, "queue": plan.placement.queue})
    return ToolError(
        type=ErrorType.EXECUTION_ERROR,
        message=f"The call was attempted and did not end: {_cause(error)}",
        details={"outcome": "unknown"},
    )


def _never_started(error: BaseException) -> bool:
    cause = error.cause if isinstance(error, ActivityError) else None
    return isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_START


def _cause(error: BaseException) -> str:
    cause = error.cause if isinstance(error, ActivityError) else error
    return str(cause) or type(cause).__name__
