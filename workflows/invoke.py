"""One call: admit, call, settle.

Single calls and steps of group sessions use the same functions.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple, NoReturn

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.sessions import AdoptedCall
from toolagent.core.calls.results import NOT_ADMITTED, failed
from toolagent_service import step_names, stubs
from toolagent_service.contracts.steps import (
    Admission,
    AdmitRequest,
    Admitted,
    Answered,
    CallPlan,
    CallRequest,
    Finished,
    Grouped,
    Held,
    JoinRequest,
    OfSession,
    PlaceRequest,
    SettleRequest,
)
from workflows import options
from workflows.cancelling import despite_cancellation
from workflows.lost_hosts import is_not_taken, is_taken_before, told_when_lost

_LOST, _TAKEN = "lost-with-its-host", "taken-before"
"""Before the first patch, a call whose host died was tried again in the queue of that host. Before the second, the error of a call that no
worker took again said that no worker had taken it."""

_GROWS = "join-pauses-grow"
"""Before this patch, all pauses were as long as the first, and hours of them filled the history."""

_ANEW = "waits-in-a-new-run"
"""Before this patch, waiting for a door filled the history of one run."""

_FIRST_TASK = 3
"""Events in the history when the first workflow task begins."""

_MOST_LOST = 3
"""The most hosts with which a call may be lost. An attempt on the next host gives it up; a worker of an older version does not."""

CANCELLED_BEFORE = ToolError(type=ErrorType.CANCELLED, message="The call was cancelled before it was made.", details={"sent": False})


class Decision(NamedTuple):
    """The decision about a call, and whether it was cancelled meanwhile."""

    admission: Admitted | Answered | Grouped
    is_cancelled: bool = False


async def invoke(
    call: ToolCall,
    call_id: str,
    *,
    is_new: bool = False,
    prefer: str | None = None,
    version: str | None = None,
    session: OfSession | None = None,
    instead: Finished | None = None,
    is_stop: bool = False,
) -> ToolResult:
    """Make one call; `is_new`: it cannot have begun before. Its session is on the host `prefer`, and uses this version.

    With `instead`, the call gets that answer and is not made. Errors of the tool or the caller, and a cancellation, are in the result.
    """
    info = workflow.info()
    request = AdmitRequest(
        call=call,
        call_id=call_id,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        is_new=is_new,
        prefer=prefer,
        prefer_version=version,
        session=session,
        instead=instead,
        is_stop=is_stop,
    )
    return await carried_out(request, await decided(request))


async def adopted(
    asked: AdoptedCall,
    session: OfSession,
    *,
    prefer: str | None = None,
    version: str | None = None,
    instead: Finished | None = None,
    is_stop: bool = False,
) -> ToolResult:
    """As `invoke`, for a call whose caller waits in a workflow of its own. The record names that workflow, which may be cancelled."""
    request = AdmitRequest(
        call=asked.call,
        call_id=asked.call_id,
        workflow_id=asked.workflow_id,
        run_id=asked.run_id,
        prefer=prefer,
        prefer_version=version,
        session=session,
        instead=instead,
        is_stop=is_stop,
    )
    return await carried_out(request, await decided(request))


async def tell(asked: AdoptedCall) -> None:
    """Signal the workflow that waits for the call; the record has the result."""
    try:
        await despite_cancellation(lambda: workflow.get_external_workflow_handle(asked.workflow_id).signal(step_names.ANSWERED))
    except FailureError as error:
        workflow.logger.info("asker_gone: %s", error)


async def decided(request: AdmitRequest, *, is_cancelled: bool = False, renew: Callable[[bool], NoReturn] | None = None) -> Decision:
    """The decision, once no front door makes the call. `renew` continues in a new run, and tells it whether the call is cancelled.

    A local activity that fails raises its ApplicationError without an ActivityError.
    """
    is_unsent = request.is_new and not _was_begun(request)
    try:
        return await _decided(request, is_cancelled=is_cancelled, renew=renew)
    except FailureError as error:
        # A call that another process may have begun may have been sent.
        details: JsonValue = {"reason": NOT_ADMITTED, **({"sent": False} if is_unsent else {})}
        wrong = ToolError(type=ErrorType.UNAVAILABLE, message=f"The call could not be admitted: {_cause(error)}", details=details)
        return Decision(Answered(result=failed(request.call_id, request.call.tool_id, wrong, workflow.now())))


def _was_begun(request: AdmitRequest) -> bool:
    """Whether a process may have begun the call during admission, and died. Then an earlier workflow task was lost. Calls of sessions are
    never begun during admission."""
    is_alone = request.session is None and request.prefer is None
    return is_alone and workflow.info().get_current_history_length() > _FIRST_TASK


async def carried_out(request: AdmitRequest, decision: Decision) -> ToolResult:
    """Carry out the decision. Returns the result of the call."""
    match decision.admission:
        case Answered(result=result):
            return result
        case Admitted(plan=plan, is_begun=is_begun):
            if decision.is_cancelled and not is_begun:
                outcome = Finished(error=CANCELLED_BEFORE)
            else:
                outcome = await _call(plan, request, is_begun=is_begun, is_cancelled=decision.is_cancelled)
            if outcome.settled is not None:
                return _whole(outcome.settled, outcome)
            settling = SettleRequest(plan=plan, outcome=outcome, workflow_id=request.workflow_id, run_id=request.run_id)
            return await _settle(settling)
        case Grouped():
            raise TypeError("Only a call that is asked for `alone` has a part in a session.")


async def _decided(request: AdmitRequest, *, is_cancelled: bool, renew: Callable[[bool], NoReturn] | None) -> Decision:
    pause, before = options.JOIN_PAUSE, None
    while True:
        admission, was_heard = await _admit(request, is_cancelled=is_cancelled)
        is_cancelled = is_cancelled or was_heard
        if not isinstance(admission, Held):
            return Decision(admission, is_cancelled)
        if renew is not None and workflow.info().is_continue_as_new_suggested() and workflow.patched(_ANEW):
            renew(is_cancelled)
        known = admission.door, is_cancelled
        if known != before:
            # Another door may answer, and a door that answers learns of a cancellation.
            pause, before = options.JOIN_PAUSE, known
        join = JoinRequest(call_id=request.call_id, tool_id=request.call.tool_id, is_cancelled=is_cancelled)
        pause = await _joined(join, admission.door, pause)
        is_cancelled = is_cancelled or workflow.cancellation_reason() is not None


async def _joined(request: JoinRequest, door: str, pause: timedelta) -> timedelta:
    """Wait until the door does not have the call any more, or is gone. Then admission decides again. Returns the next pause."""
    try:
        await workflow.execute_activity(stubs.join_call, request, **options.join_call(request.tool_id, door))
    except (asyncio.CancelledError, FailureError) as error:
        if is_cancelled_exception(error):
            return pause
        if pause == options.JOIN_PAUSE or not workflow.patched(_GROWS):
            await despite_cancellation(lambda: workflow.sleep(options.JOIN_PAUSE))
        else:
            await _paused(pause)
        return min(2 * pause, options.LONGEST_JOIN_PAUSE)
    return options.JOIN_PAUSE


async def _paused(pause: timedelta) -> None:
    """Sleep; a cancellation ends it early."""
    try:
        await workflow.sleep(pause)
    except asyncio.CancelledError:
        return


async def _admit(request: AdmitRequest, *, is_cancelled: bool) -> tuple[Admission, bool]:
    """The decision, and whether the call was cancelled meanwhile. A call known to be cancelled does not begin.

    After a cancellation, admission is asked again: the call may have been made and recorded by then.
    """
    heard: list[bool] = []

    async def admit() -> Admission:
        known = is_cancelled or workflow.cancellation_reason() is not None
        asked = request.model_copy(update={"is_cancelled": True}) if known else request
        return await workflow.execute_local_activity(stubs.admit, asked, **options.admit(request.call.tool_id))

    admission = await despite_cancellation(admit, lambda: heard.append(True))
    return admission, bool(heard)


async def _call(plan: CallPlan, request: AdmitRequest, *, is_begun: bool, is_cancelled: bool) -> Finished:
    """A call that `is_begun` and is cancelled is ended by the process that makes it."""
    while True:
        try:
            return await _call_on_queue(plan, request, is_begun=is_begun, is_cancelled=is_cancelled)
        except (asyncio.CancelledError, FailureError) as error:
            if not is_begun or not is_cancelled_exception(error):
                return Finished(error=_not_finished(plan, error))
        # No worker took the activity. The call goes on until its host learns of the cancellation; a lost host is waited for only shortly.
        is_cancelled = True
        plan = plan.model_copy(update={"queue_timeout_s": min(plan.queue_timeout_s, options.HOST_PATIENCE.total_seconds())})


async def _call_on_queue(plan: CallPlan, request: AdmitRequest, *, is_begun: bool, is_cancelled: bool) -> Finished:
    queue_timeout = timedelta(seconds=plan.queue_timeout_s)
    give_up_at = workflow.now() + queue_timeout
    patience, asked = options.HOST_PATIENCE, _asked(plan, request).model_copy(update={"is_cancelled": is_cancelled})
    is_bound = request.session is not None or request.prefer is not None
    is_taken = False
    while True:
        left = max(give_up_at - workflow.now(), timedelta(seconds=1))
        try:
            waits = min(patience, left) if plan.placement.host else left
            return await workflow.execute_activity(
                stubs.call_tool, asked, **options.call(plan, waits, is_bound=is_bound, is_begun=is_begun)
            )
        except ActivityError as error:
            told = told_when_lost(error)
            is_taken = is_taken or told is not None or is_taken_before(error)
            if told is not None and asked.lost < _MOST_LOST and workflow.patched(_LOST):
                give_up_at = workflow.now() + queue_timeout
                asked = asked.model_copy(update={"lost": asked.lost + 1, "told": tuple(told)})
            elif is_not_taken(error) and workflow.now() < give_up_at:
                # The next host is alive. It may be the same one, and busy, so it gets more time.
                patience *= 2
            elif is_taken and is_not_taken(error) and workflow.patched(_TAKEN):
                return Finished(error=_not_taken_again(plan))
            else:
                raise
            # Only its host knows a call that has begun. Once an attempt is lost there, the call is too.
            prefer = plan.placement.host if is_begun and not is_taken else request.prefer
            where = PlaceRequest(plan=plan, prefer=prefer)
            placement = await workflow.execute_local_activity(stubs.place, where, **options.place(plan))
            plan = plan.model_copy(update={"placement": placement})
            asked = asked.model_copy(update={"plan": plan})


def _asked(plan: CallPlan, request: AdmitRequest) -> CallRequest:
    """The attempt settles the call, if the workflow ends with it.

    If more steps follow, workers of two versions may take turns: one that does not know of the attempt's settlement would settle again,
    and the other could not replay that.
    """
    if request.session is not None or request.call.callback_url is not None:
        return CallRequest(plan=plan)
    return CallRequest(plan=plan, workflow_id=request.workflow_id, run_id=request.run_id)


async def _settle(request: SettleRequest) -> ToolResult:
    """Record the end of the call, also if it is cancelled meanwhile. If that fails, the result says so."""
    try:
        settled = await despite_cancellation(lambda: workflow.execute_local_activity(stubs.settle, request, **options.settle(request.plan)))
    except FailureError as error:
        return _not_recorded(request, error)
    return _whole(settled, request.outcome)


def _whole(settled: ToolResult, outcome: Finished) -> ToolResult:
    """The result with its output. The result of an earlier settlement is complete, and stays."""
    is_ours = settled.status == "success" and settled.result is None and outcome.error is None
    return settled.model_copy(update={"result": outcome.output}) if is_ours else settled


def _not_recorded(request: SettleRequest, error: BaseException) -> ToolResult:
    plan, outcome = request.plan, request.outcome
    details: JsonValue = {"reason": "not_recorded", "outcome": "unknown" if outcome.error else "executed"}
    wrong = ToolError(type=ErrorType.EXECUTION_ERROR, message=f"The call's end could not be recorded: {_cause(error)}", details=details)
    return failed(plan.call_id, plan.tool_id, wrong, outcome.started_at or workflow.now(), execution_time=outcome.execution_time)


def _not_finished(plan: CallPlan, error: BaseException) -> ToolError:
    """Why no attempt gave an answer. `settle` looks up whether one of them had sent the request."""
    if is_cancelled_exception(error):
        return ToolError(type=ErrorType.CANCELLED, message="The call was cancelled while no worker had it.")
    if is_not_taken(error):
        message = f"No worker took the call from queue {plan.placement.queue!r} within {plan.queue_timeout_s:g} s."
        return ToolError(type=ErrorType.UNAVAILABLE, message=message, details={"queue": plan.placement.queue})
    message = f"The call was attempted and did not end: {_cause(error)}"
    if isinstance(error, ActivityError) and told_when_lost(error) is not None:
        message = "Each host that made the call fell silent before it ended, and it is not made again."
    return ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details={"outcome": "unknown"})


def _not_taken_again(plan: CallPlan) -> ToolError:
    message = f"A worker began the call and did not end it, and none took it again from queue {plan.placement.queue!r}."
    return ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details={"outcome": "unknown"})


def _cause(error: BaseException) -> str:
    cause = error.cause if isinstance(error, ActivityError) else error
    return str(cause) or type(cause).__name__
