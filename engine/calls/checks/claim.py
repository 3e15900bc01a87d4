"""Checks whether a front door makes the call already; then the workflow waits for that one."""

from engine.calls.checks import earlier_result
from engine.calls.checks.asked import AnsweredBefore, Asked, Check, HeldByDoor, Sources
from engine.calls.endings import Refused
from engine.store.claims import WORKFLOW, Claim
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType
from toolagent.core.calls.results import key_conflict


async def _check(asked: Asked, sources: Sources) -> Asked:
    if asked.is_new:
        return asked
    ours = Claim(asked.call_id, asked.fingerprint, WORKFLOW)
    standing, found = await sources.claims.take(ours, asked.call)
    if standing == "settled":
        return await earlier_result.CHECK.run(asked, sources)
    if found.fingerprint != asked.fingerprint:
        raise AnsweredBefore(key_conflict(asked.call_id, asked.call.tool_id, now()))
    if found.owner != WORKFLOW and found.owner in {lane.door for lane in await sources.doors.alive()}:
        # Even if the call is cancelled, or something changed since: the door knows how far the call is.
        raise HeldByDoor(found.owner)
    if found.is_cancelled:
        raise await _cancelled(asked, sources)
    if found.owner == WORKFLOW:
        return asked
    # The owner is dead. Another process may take the claim over first.
    return asked if await sources.claims.take_over(found, WORKFLOW) else await _check(asked, sources)


async def _cancelled(asked: Asked, sources: Sources) -> Refused:
    record = await sources.calls.get(asked.call_id)
    if record is None or record.sent_at is None:
        return Refused(ErrorType.CANCELLED, "The call was cancelled before it was made.", {"sent": False})
    message = "The call was cancelled. It had been sent, and who made it is gone."
    return Refused(ErrorType.CANCELLED, message, {"sent": True, "outcome": "unknown"})


CHECK = Check("claim", "the claim on the call's id", _check, (ErrorType.REJECTED, ErrorType.CANCELLED))
