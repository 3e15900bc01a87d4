"""Names of front doors and their lanes, and what a lane may answer instead of a result."""

from dataclasses import dataclass, field

from toolagent.contracts.calls import ToolResult


def lane_id(door: str) -> str:
    """The workflow id of the lane of a front door."""
    return f"lane-{door}"


def door_queue(door: str) -> str:
    """The task queue on which a front door takes batches of its lane, and calls that it already holds."""
    return f"door/{door}"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The call gets a workflow of its own: it `has_begun` under this id, or has to be started (None: under a new id).

    `claimed_at`: when this request claimed the call; empty if it has no claim.
    """

    call_id: str | None
    has_begun: bool = False
    claimed_at: str = field(default="", compare=False)


class _UnansweredError(Exception):
    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.call_id)
        self.result = result


class LaneRefusedError(_UnansweredError):
    """The call is not made; `result` says why."""


class LanePendingError(_UnansweredError):
    """The call has no answer yet; `result` says why. It was accepted and goes on, or it is unknown whether it was."""


class LaneUnreachableError(Exception):
    """Temporal does not answer, or refused the request. A retry is safe."""


class BatchRefusedError(LaneUnreachableError):
    """Temporal answers, but refuses this batch."""
