"""What front doors and their lanes are called, and what a lane may say instead of a result."""

from dataclasses import dataclass, field

from toolagent.contracts.calls import ToolResult


def lane_id(door: str) -> str:
    """The workflow of a front door's lane."""
    return f"lane-{door}"


def door_queue(door: str) -> str:
    """Where a front door takes the batches of its lane, and calls that it has in hand."""
    return f"door/{door}"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The call ends by a workflow of its own: it `has_begun` under this id, or is to be started (None: under any).

    `claimed_at` is of the claim that was made for this very request; empty where there is none.
    """

    call_id: str | None
    has_begun: bool = False
    claimed_at: str = field(default="", compare=False)


class LaneRefusedError(Exception):
    """The call is not made; `result` says why."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.call_id)
        self.result = result


class LanePendingError(Exception):
    """The call has no answer yet; `result` says why. It was accepted and goes on, or nobody can say now whether it was."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.call_id)
        self.result = result


class LaneUnreachableError(Exception):
    """Temporal does not answer, or did not take what was asked; it may be asked again."""


class BatchRefusedError(LaneUnreachableError):
    """Temporal answers, and does not take this batch."""
