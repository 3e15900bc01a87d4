"""One call: admit, call, settle. A call of its own and a step of a group session are this same function."""

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
from workflows.cancelling import surely
from workflows.lost_hosts import is_not_taken, is_taken_before, told_when_lost

_LOST, _TAKEN = "lost-with-its-host", "taken-before"
"""Before the first a call whose host died was tried again in the queue of that host; before the second it was said of a call that no
worker had taken it, where none had taken it again."""

_GROWS = "join-pauses-grow"
"""Before it each pause was as long as the first, and hours of them filled the history."""

_ANEW = "waits-in-a-new-run"
"""Before it who waited for a door filled the history of one run."""

_FIRST_TASK = 3
"""Events of a workflow when its first task begins."""

_MOST_LOST = 3
"""Hosts that a call is lost with. An attempt on the next one says that it is given up; a worker of an older version does not."""

CANCELLED_BEFORE = ToolError(type=ErrorType.CANCELLED, message="The call was cancelled before it was made.", details={"sent": False})


class Decision(NamedTuple):
    """What is decided of a call, and whether it was cancelled meanwhile."""

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
    """Make one call; `is_new` where nobody else can have begun it. What it works with is on the host `prefer`, in this version.

    With `instead` it is answered, not made.

    What the tool or the caller got wrong is in the result; cancelling gives a result too.
    """
    asked = {"prefer": prefer, "prefer_version": version, "session": session, "instead": instead, "is_stop": is_stop}
    request = request_of(call, call_id, is_new=is_new).model_copy(update=asked)
    return await carried_out(request, await decided(request))


def request_of(call: ToolCall, call_id: str, *, is_new: bool = False) -> AdmitRequest:
    info = workflow.info()
    return AdmitRequest(call=call, call_id=call_id, workflow_id=info.workflow_id, run_id=info.run_id, is_new=is_new)


async def adopted(
    asked: AdoptedCall,
    session: OfSession,
    *,
    prefer: str | None = None,
    version: str | None = None,
    instead: Finished | None = None,
    is_stop: bool = False,
) -> ToolResult:
    """As `invoke`, for who waits for the call in a workflow of its own: the record names that one, which may be cancelled."""
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
    """Who waits for the call: the record says how it ended."""
    try:
        await surely(lambda: workflow.get_external_workflow_handle(asked.workflow_id).signal(step_names.ANSWERED))
    except FailureError as error:
        workflow.logger.info("asker_gone: %s", error)


async def decided(request: AdmitRequest, *, is_cancelled: bool = False, renew: Callable[[bool], NoReturn] | None = None) -> Decision:
    """Once no front door makes the call. `renew` goes on waiting in a new run, which is told whether the call is cancelled.

    A local activity that fails raises its ApplicationError as it is, in no ActivityError.
    """
    is_unsent = request.is_new and not _was_begun(request)
    try:
        return await _decided(request, is_cancelled=is_cancelled, renew=renew)
    except FailureError as error:
        # What others may have begun may have been sent.
        details: JsonValue = {"reason": NOT_ADMITTED, **({"sent": False} if is_unsent else {})}
        wrong = ToolError(type=ErrorType.UNAVAILABLE, message=f"The call could not be admitted: {_cause(error)}", details=details)
        return Decision(Answered(result=failed(request.call_id, request.call.tool_id, wrong, workflow.now())))


def _was_begun(request: AdmitRequest) -> bool:
    """Whether a process may have begun the call while it admitted it, and died: then an earlier task of the workflow was lost. No call of
    a session is begun like that."""
    is_alone = request.session is None and request.prefer is None
    return is_alone and workflow.info().get_current_history_length() > _FIRST_TASK


async def carried_out(request: AdmitRequest, decision: Decision) -> ToolResult:
    """The result of a call about which that was decided."""
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
            # Another door may answer, and one that answers is told of a cancellation.
            pause, before = options.JOIN_PAUSE, known
        join = JoinRequest(call_id=request.call_id, tool_id=request.call.tool_id, is_cancelled=is_cancelled)
        pause = await _joined(join, admission.door, pause)
        is_cancelled = is_cancelled or workflow.cancellation_reason() is not None


async def _joined(request: JoinRequest, door: str, pause: timedelta) -> timedelta:
    """Wait until the door has the call no longer, or is not there: admission says what becomes of it then. Gives the next pause."""
    try:
        await workflow.execute_activity(stubs.join_call, request, **options.join_call(request.tool_id, door))
    except (asyncio.CancelledError, FailureError) as error:
        if is_cancelled_exception(error):
            return pause
        if pause == options.JOIN_PAUSE or not workflow.patched(_GROWS):
            await surely(lambda: workflow.sleep(options.JOIN_PAUSE))
        else:
            await _paused(pause)
        return min(2 * pause, options.LONGEST_JOIN_PAUSE)
    return options.JOIN_PAUSE


async def _paused(pause: timedelta) -> None:
    """Whoever cancels does not wait for the end of it."""
    try:
        await workflow.sleep(pause)
    except asyncio.CancelledError:
        return


async def _admit(request: AdmitRequest, *, is_cancelled: bool) -> tuple[Admission, bool]:
    """The decision, and whether the call was cancelled meanwhile. What is known to be cancelled does not begin.

    What could be made at once may have been made and recorded by then, and its caller told: only asking again says so.
    """
    heard: list[bool] = []

    async def admit() -> Admission:
        known = is_cancelled or workflow.cancellation_reason() is not None
        asked = request.model_copy(update={"is_cancelled": True}) if known else request
        return await workflow.execute_local_activity(stubs.admit, asked, **options.admit(request.call.tool_id))

    admission = await surely(admit, lambda: heard.append(True))
    return admission, bool(heard)


async def _call(plan: CallPlan, request: AdmitRequest, *, is_begun: bool, is_cancelled: bool) -> Finished:
    """One that `is_begun` when it is cancelled is ended by who makes it."""
    while True:
        try:
            return await _call_on_queue(plan, request, is_begun=is_begun, is_cancelled=is_cancelled)
        except (asyncio.CancelledError, FailureError) as error:
            if not is_begun or not is_cancelled_exception(error):
                return Finished(error=_not_finished(plan, error))
        # No worker had what waits for it. It goes on until it is told; a host that is gone is not waited for as for a call.
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
                # Whoever answers now is alive; it may be the same host, only busy, and is left in peace longer.
                patience *= 2
            elif is_taken and is_not_taken(error) and workflow.patched(_TAKEN):
                return Finished(error=_not_taken_again(plan))
            else:
                raise
            # Only its host knows the call that has begun. Once an attempt was lost there, so is that.
            prefer = plan.placement.host if is_begun and not is_taken else request.prefer
            where = PlaceRequest(plan=plan, prefer=prefer)
            placement = await workflow.execute_local_activity(stubs.place, where, **options.place(plan))
            plan = plan.model_copy(update={"placement": placement})
            asked = asked.model_copy(update={"plan": plan})


def _asked(plan: CallPlan, request: AdmitRequest) -> CallRequest:
    """The attempt settles a call whose workflow ends with it.

    Where more follows, workers of two versions may take turns, and one that does not know what the attempt has settled would do so
    again: then the other could not replay that.
    """
    if request.session is not None or request.call.callback_url is not None:
        return CallRequest(plan=plan)
    return CallRequest(plan=plan, workflow_id=request.workflow_id, run_id=request.run_id)


async def _settle(request: SettleRequest) -> ToolResult:
    """What was done is written down even when the call is cancelled meanwhile; where that cannot be, its caller is told."""
    try:
        settled = await surely(lambda: workflow.execute_local_activity(stubs.settle, request, **options.settle(request.plan)))
    except FailureError as error:
        return _not_recorded(request, error)
    return _whole(settled, request.outcome)


def _whole(settled: ToolResult, outcome: Finished) -> ToolResult:
    """With its output. An earlier settlement stands, and comes whole."""
    is_ours = settled.status == "success" and settled.result is None and outcome.error is None
    return settled.model_copy(update={"result": outcome.output}) if is_ours else settled


def _not_recorded(request: SettleRequest, error: BaseException) -> ToolResult:
    plan, outcome = request.plan, request.outcome
    details: JsonValue = {"reason": "not_recorded", "outcome": "unknown" if outcome.error else "executed"}
    wrong = ToolError(type=ErrorType.EXECUTION_ERROR, message=f"The call's end could not be recorded: {_cause(error)}", details=details)
    return failed(plan.call_id, plan.tool_id, wrong, outcome.started_at or workflow.now(), execution_time=outcome.execution_time)


def _not_finished(plan: CallPlan, error: BaseException) -> ToolError:
    """Why no attempt gave an answer. Whether one of them had sent the request is only known where it was noted: `settle` says so."""
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
