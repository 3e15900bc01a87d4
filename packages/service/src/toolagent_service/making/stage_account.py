"""The account of a task on Temporal's page: its stages, with the time and cost of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from toolagent.contracts.making import Stage


@dataclass(frozen=True, slots=True)
class Entered:
    """The entry into a stage, or a later round of it. `cost_usd` is the cost of the task until then."""

    stage: Stage
    at: datetime
    cost_usd: float


def stage_account(entered: Sequence[Entered], ended_at: datetime | None = None, cost_usd: float = 0.0) -> str:
    """A list in Markdown, in UTC (the page shows tables without space). `ended_at` and `cost_usd`: for an ended task."""
    until = [(one.at, one.cost_usd) for one in entered[1:]]
    if ended_at is not None:
        until.append((ended_at, cost_usd))
    took = [f"{(at - one.at).total_seconds():.1f} s, ${cost - one.cost_usd:.4f}" for one, (at, cost) in zip(entered, until, strict=False)]
    return "\n".join(f"- {one.at:%H:%M:%S} **{one.stage}** {told}" for one, told in zip(entered, [*took, "…"], strict=False))
