"""Whether the call was made before, under the same id."""

from engine.calls.checks.asked import AnsweredBefore, Asked, Check, Sources
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.core.results import IDEMPOTENCY_CONFLICT, failed

__all__ = ["CHECK"]


async def _check(asked: Asked, sources: Sources) -> Asked:
    record = await sources.calls.get(asked.call_id)
    if record is None:
        return asked
    if record.fingerprint != asked.fingerprint:
        message = "This idempotency key or call id was used for another call: other tool, version or params. Choose a new one."
        error = ToolError(type=ErrorType.REJECTED, message=message, details={"reason": IDEMPOTENCY_CONFLICT})
        # The record is the other call's: of this one nothing is written down.
        raise AnsweredBefore(failed(asked.call_id, asked.call.tool_id, error, now()))
    if record.result is not None:
        raise AnsweredBefore(record.result)
    return asked


CHECK = Check("earlier_result", "the record under the call's id", _check, (ErrorType.REJECTED,))
