"""A call made outside of a session, of a tool that may have a role in a group: sessions make launches and stops, and know of runs.

The record of the call has its result, whichever workflow made it. Until then, the session is asked again and again.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

from temporalio import workflow
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError, is_cancelled_exception

from toolagent.client import names
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.groups import GroupRole
from toolagent.contracts.sessions import AdoptedCall, OpenSession
from toolagent_service import step_names
from toolagent_service.contracts.sessions import SessionLife, SessionUse
from toolagent_service.contracts.steps import AdmitRequest, Finished, Grouped, OfSession
from toolagent_service.groups.sessions import the_step
from workflows.cancelling import despite_cancellation
from workflows.groups.tool_group import ToolGroup
from workflows.invoke import CANCELLED_BEFORE, Decision, carried_out, decided

_PAUSE, _LONGEST_PAUSE = timedelta(seconds=15), timedelta(minutes=10)
"""The pause before the record is looked at without a message of the session; doubled each time."""

_AGAIN, _LONGEST_AGAIN = timedelta(seconds=2), timedelta(minutes=10)
"""The pause before a missing session is asked for again; doubled each time. Its row may live for weeks without its workflow."""


async def invoke_alone(
    call: ToolCall, call_id: str, *, is_new: bool, told: Callable[[], int], is_cancelled: bool, renew: Callable[[bool], NoReturn]
) -> ToolResult:
    """As `invoke`. `told` returns how often a session has signalled that the call is answered. For the others see `decided`."""
    info = workflow.info()
    request = AdmitRequest(call=call, call_id=call_id, workflow_id=info.workflow_id, run_id=info.run_id, is_new=is_new, alone=True)
    decision = await decided(request, is_cancelled=is_cancelled, renew=renew)
    if not isinstance(decision.admission, Grouped):
        return await carried_out(request, decision)
    part = decision.admission
    request = request.model_copy(update={"is_new": False})
    if part.role is GroupRole.RUN:
        return await _used(request, part, is_cancelled=decision.is_cancelled)
    if part.role is GroupRole.LAUNCH:
        request = request.model_copy(update={"session": _session_of(part)})
    elif not the_step(part.group, GroupRole.STOP).bindings:
        request = request.model_copy(update={"stops": part.session_id})
    if decision.is_cancelled:
        given_up = request.model_copy(update={"instead": Finished(error=CANCELLED_BEFORE)})
        return await carried_out(given_up, await decided(given_up))
    return await _made_by_session(request, decision, told)


async def _used(request: AdmitRequest, part: Grouped, *, is_cancelled: bool) -> ToolResult:
    """Make a run. The session is told before and after, so that it does not count as unused."""
    until = workflow.now() + timedelta(seconds=part.lasts_s)
    await _say(part, step_names.USE_SESSION, SessionUse(call_id=request.call_id, until=until))
    asked = request.model_copy(update={"alone": False, "prefer": part.host, "prefer_version": part.version, "session": _session_of(part)})
    decision = await decided(asked)
    result = await carried_out(asked, Decision(decision.admission, decision.is_cancelled or is_cancelled))
    await _say(part, step_names.USE_SESSION, SessionUse(call_id=request.call_id))
    return result


async def _made_by_session(request: AdmitRequest, decision: Decision, told: Callable[[], int]) -> ToolResult:
    asked = AdoptedCall(call=request.call, call_id=request.call_id, workflow_id=request.workflow_id, run_id=request.run_id)
    pause, again, heard, gives_up = _PAUSE, _AGAIN, 0, False
    while isinstance(part := decision.admission, Grouped):
        launches = part.role is GroupRole.LAUNCH
        is_there = await (_launch(part, asked) if launches else _say(part, step_names.STOP_BY, asked))
        if gives_up or not (launches and _is_cancelled()):
            await _wait(lambda heard=heard: told() != heard, pause if is_there else again)
        if launches and not gives_up and _is_cancelled():
            # Also if it is launched by then, because the caller does not want it. A stop goes on.
            gives_up, pause = True, _PAUSE
            await _cancel(part)
        pause, again, heard = min(2 * pause, _LONGEST_PAUSE), _AGAIN if is_there else min(2 * again, _LONGEST_AGAIN), told()
        decision = await decided(request)
    # If the session has ended, the call is made like any other.
    return await carried_out(request, decision)


async def _launch(part: Grouped, asked: AdoptedCall) -> bool:
    """Start the session, unless it exists. It goes on until its stop, however this workflow ends."""
    call = asked.call
    opened = OpenSession(session_id=part.session_id, group=part.group, caller=call.caller, adopts=asked)
    life = SessionLife(request=opened).model_dump(mode="json", exclude_defaults=True)
    workflow_id = names.session_workflow(part.group.group_id, part.session_id)
    try:
        handle = await despite_cancellation(
            lambda: workflow.start_child_workflow(
                ToolGroup.run,
                life,
                id=workflow_id,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                static_summary=part.group.group_id,
            )
        )
    except WorkflowAlreadyStartedError:
        return True
    handle.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return True


async def _wait(is_told: Callable[[], bool], pause: timedelta) -> None:
    """Wait for a message of the session, a cancellation of this workflow, or the end of the pause."""
    try:
        await workflow.wait_condition(is_told, timeout=pause)
    except (TimeoutError, asyncio.CancelledError):
        return


def _is_cancelled() -> bool:
    return workflow.cancellation_reason() is not None


async def _cancel(part: Grouped) -> None:
    try:
        await despite_cancellation(lambda: _handle(part).cancel())
    except FailureError as error:
        workflow.logger.warning("session_not_cancelled: %s", error)


async def _say(part: Grouped, signal: str, said: Contract) -> bool:
    """Signal the session, also if this workflow is cancelled; False if the session's workflow does not exist."""
    try:
        await despite_cancellation(lambda: _handle(part).signal(signal, said))
    except FailureError as error:
        if is_cancelled_exception(error):
            raise
        return False
    return True


def _handle(part: Grouped) -> workflow.ExternalWorkflowHandle[ToolGroup]:
    return workflow.get_external_workflow_handle_for(ToolGroup.run, names.session_workflow(part.group.group_id, part.session_id))


def _session_of(part: Grouped) -> OfSession:
    return OfSession(group_id=part.group.group_id, session_id=part.session_id)
