"""Checks whether the call was made before, under the same id."""

from engine.calls.checks.asked import AnsweredBefore, Asked, Check, Sources
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType
from toolagent.core.calls.results import key_conflict


async def _check(asked: Asked, sources: Sources) -> Asked:
    if asked.is_new:
        return asked
    record = await sources.calls.get(asked.call_id)
    if record is None:
        return asked
    if record.fingerprint != asked.fingerprint:
        # The record belongs to another call, so this one is not recorded.
        raise AnsweredBefore(key_conflict(asked.call_id, asked.call.tool_id, now()))
    if record.result is not None:
        raise AnsweredBefore(record.result)
    return asked


CHECK = Check("earlier_result", "the record under the call's id", _check, (ErrorType.REJECTED,))
