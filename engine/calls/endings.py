"""What is said of a call that has ended: its events, and whether it had been sent."""

from pydantic import JsonValue

from engine.store.clock import now
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.records import Event, EventType
from toolagent.core.calls.masking import masked_text

__all__ = [
    "LEFT_BEHIND",
    "STEP_FAULTY",
    "STEP_LOST",
    "as_not_sent",
    "as_sent",
    "events_of",
    "faulty_step",
    "lost_step",
    "misfit",
    "told_of",
]

LEFT_BEHIND = "left_behind"
"""In `metadata` of a result: what the tool left that could not be removed. Its answer stands, as it may have acted."""

STEP_LOST = "step_lost"
"""`details.reason` of a call whose step has killed or frozen its process."""

STEP_FAULTY = "step_faulty"
"""`details.reason` of a call whose answer could not be checked and recorded, for a reason of ours."""

_TOLD = 500
"""Characters of what an unforeseen error says."""


def events_of(result: ToolResult, *, started: bool) -> tuple[Event, ...]:
    """What happened to a call that ended like this."""
    begun = Event(
        event_id=f"{result.call_id}:started",
        event_type=EventType.EXECUTION_STARTED,
        tool_id=result.tool_id,
        call_id=result.call_id,
        at=result.executed_at,
    )
    details: JsonValue = {"error_type": result.error_type.value} if result.error_type else None
    kind = EventType.EXECUTION_COMPLETED if result.status == "success" else EventType.EXECUTION_FAILED
    if result.error_type is ErrorType.VALIDATION_ERROR and not started:
        kind = EventType.VALIDATION_ERROR
    ended = Event(
        event_id=f"{result.call_id}:ended", event_type=kind, tool_id=result.tool_id, call_id=result.call_id, at=now(), details=details
    )
    told = (begun, ended) if started else (ended,)
    left = result.metadata.get(LEFT_BEHIND)
    return (*told, _counted_against(result, left)) if left else told


def _counted_against(result: ToolResult, left: JsonValue) -> Event:
    """An alert of the tool's health: repairs and whoever follows the tool read it."""
    return Event(
        event_id=f"{result.call_id}:{LEFT_BEHIND}",
        event_type=EventType.HEALTH_ALERT,
        tool_id=result.tool_id,
        call_id=result.call_id,
        at=now(),
        details={"error": left},
    )


def misfit(issues: tuple[ValidationIssue, ...]) -> ToolError:
    """The error of a call whose output breaks its tool's output schema."""
    listed = "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:3])
    message = f"The tool ran, but its output does not fit its output schema: {listed}"
    return ToolError(type=ErrorType.OUTPUT_VALIDATION_ERROR, message=message, details={"outcome": "executed"})


def lost_step(doing: str, attempts: int, outcome: str) -> ToolError:
    """The error of a call one of whose steps is not tried again."""
    message = (
        f"{doing} was given up: the worker was killed or stood still in each of {attempts} attempts. The call may have a part in that, by "
        "its size or its tool's schemas. Look at the service's log before you make it again."
    )
    details: JsonValue = {"reason": STEP_LOST, "lost_attempts": attempts, "outcome": outcome}
    return ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details=details)


def faulty_step(faults: int, told: str, outcome: str) -> ToolError:
    """The error of a call that ended and whose end cannot be written down as it was. `told` is the fault."""
    message = f"Checking and recording the call's end failed {faults} times for a reason of ours: {told}. The service's log has more."
    return ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details={"reason": STEP_FAULTY, "outcome": outcome})


def as_sent(error: ToolError) -> ToolError:
    """An attempt had sent the request: the tool may have acted."""
    known = error.details if isinstance(error.details, dict) else {}
    # `unavailable` invites to try again, which might do it twice.
    kind = ErrorType.EXECUTION_ERROR if error.type is ErrorType.UNAVAILABLE else error.type
    message = error.message if known.get("sent") else f"{error.message} An attempt had sent it before, so the tool may have acted."
    return ToolError(type=kind, message=message, details={**known, "sent": True, "outcome": "unknown"})


def as_not_sent(error: ToolError) -> ToolError:
    """Nothing was sent: calling again is safe."""
    known = error.details if isinstance(error.details, dict) else {}
    unsure = known.get("outcome") == "unknown"
    details: JsonValue = {name: value for name, value in known.items() if name != "outcome"} | {"sent": False}
    return ToolError(type=ErrorType.UNAVAILABLE if unsure else error.type, message=error.message, details=details)


def told_of(error: Exception) -> str:
    """What anybody may read of it."""
    said = masked_text(str(error)[:_TOLD])
    return f"{type(error).__name__}{said and f': {said}'}"
