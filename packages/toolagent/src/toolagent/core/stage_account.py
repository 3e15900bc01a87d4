"""What a person reads of a task on Temporal's page: its stages, with the time and the money of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from toolagent.contracts.making import Stage

__all__ = ["Entered", "stage_account"]


@dataclass(frozen=True, slots=True)
class Entered:
    """A stage, or a later round of it. `cost_usd` is what the task had cost by then."""

    stage: Stage
    at: datetime
    cost_usd: float


def stage_account(entered: Sequence[Entered], ended_at: datetime | None = None, cost_usd: float = 0.0) -> str:
    """As Markdown, in UTC. `ended_at` and `cost_usd` are those of the task when it has ended."""
    until = [(one.at, one.cost_usd) for one in entered[1:]]
    took = [f"{(at - one.at).total_seconds():.1f} s | ${cost - one.cost_usd:.4f}" for one, (at, cost) in zip(entered, until, strict=False)]
    if ended_at is not None and entered:
        took.append(f"{(ended_at - entered[-1].at).total_seconds():.1f} s | ${cost_usd - entered[-1].cost_usd:.4f}")
    rows = [f"| {one.stage} | {one.at:%H:%M:%S} | {told} |" for one, told in zip(entered, [*took, "… | …"], strict=False)]
    return "\n".join(("| stage | began | took | cost |", "|---|---|---|---|", *rows))
