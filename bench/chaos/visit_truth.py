"""What is true of the calls of MCP clients afterwards."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from rich.table import Table

from bench.chaos.plan import Door
from bench.chaos.visits import KINDS, Visited, Visitors, Way
from toolagent.contracts.calls import ErrorType

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class VisitFate:
    """One call afterwards: `task` is how its task ended, `repeated` what the key answers at the other door."""

    visited: Visited
    task: JsonValue
    repeated: JsonValue
    effects: int

    @property
    def told(self) -> Sequence[JsonValue]:
        """Every end that somebody was told, in whatever way."""
        return [*self.visited.ends, *(end for end in (self.task, self.repeated) if end is not None)]

    @property
    def outcome(self) -> str:
        if self.task is None:
            return "no result" if self.visited.accepted else "never taken"
        return _error_type(self.task) or "success"


async def fates_of_visits(visited: Sequence[Visited], visitors: Visitors, effects: Path) -> list[VisitFate]:
    """Everything has to be up again."""
    slots = asyncio.Semaphore(_AT_ONCE)
    async with visitors.connected(_AT_ONCE) as http:

        async def ends_of(one: Visited) -> tuple[JsonValue, JsonValue]:
            async with slots:
                task = await visitors.task(http, one)
                other = Door.API if one.call.door is Door.UP else Door.UP
                return task, await visitors.repeated(http, one, other) if task is not None else None

        ends = await asyncio.gather(*map(ends_of, visited))
    # Only now: a call that has ended has no more effects, and repeating its key must not have had one.
    done = await asyncio.to_thread(_count, effects)
    return [VisitFate(one, task, repeated, done[one.call.key]) for one, (task, repeated) in zip(visited, ends, strict=True)]


def broken_visits(fates: Sequence[VisitFate]) -> list[str]:
    """What is held against us, each with the call's id."""
    faults = [f"{fate.visited.call.call_id} ({fate.visited.call.kind}) {fault}" for fate in fates for fault in _broken(fate)]
    successes = Counter(KINDS[fate.visited.call.kind].tool_id for fate in fates if fate.outcome == "success")
    faults += [f"{tool} never succeeded" for tool in {kind.tool_id for kind in KINDS.values()} if not successes[tool]]
    return faults + ([] if any(fate.visited.was_task for fate in fates) else ["no call became a task"])


def table_of(fates: Sequence[VisitFate]) -> Table:
    outcomes = sorted({fate.outcome for fate in fates})
    table = Table(title="Chaos: how the calls of MCP clients ended", title_justify="left")
    for column in ("", "calls", "accepted", *outcomes, "tasks", "asked", "streams resumed", "effects", "most of one"):
        table.add_column(column, justify="right" if column else "left")
    groups = {kind: [fate for fate in fates if fate.visited.call.kind == kind] for kind in KINDS}
    groups |= {way: [fate for fate in fates if fate.visited.call.way is way] for way in Way}
    for name, group in {**groups, "all": list(fates)}.items():
        if group:
            ended = Counter(fate.outcome for fate in group)
            numbers = (
                len(group),
                sum(fate.visited.accepted for fate in group),
                *(ended[outcome] for outcome in outcomes),
                sum(fate.visited.was_task for fate in group),
                sum(fate.visited.attempts for fate in group),
                sum(fate.visited.resumed for fate in group),
                sum(fate.effects for fate in group),
                max(fate.effects for fate in group),
            )
            table.add_row(name, *map(str, numbers), style="bold" if name == "all" else "", end_section=name == [*KINDS][-1])
    return table


def _broken(fate: VisitFate) -> list[str]:
    kind, visited = KINDS[fate.visited.call.kind], fate.visited
    different = {json.dumps(end, sort_keys=True) for end in fate.told}
    faults = {
        f"was accepted and has no result; the last answer: {visited.last}": visited.accepted and fate.task is None,
        "has a task that ended, and its key is not answered": fate.task is not None and fate.repeated is None,
        f"has {len(different)} different results: {sorted(different)}": len(different) > 1,
        f"had its effect {fate.effects} times": kind.once and fate.effects > 1,
        "succeeded without an effect": kind.acts and fate.outcome == "success" and not fate.effects,
        f"was said not to have been sent and had its effect {fate.effects} times": fate.effects > 0 and any(map(_says_not_sent, fate.told)),
        "was cancelled although nobody asked for that": fate.outcome == ErrorType.CANCELLED,
        "was never taken and had an effect": not visited.accepted and fate.task is None and fate.effects > 0,
    }
    return [*(fault for fault, is_so in faults.items() if is_so), *visited.wrongs]


def _error_type(end: JsonValue) -> str | None:
    """An error has a type and a message; what the tools here answer has neither."""
    told = end.get("type") if isinstance(end, dict) else None
    return told if isinstance(told, str) else None


def _says_not_sent(end: JsonValue) -> bool:
    details = end.get("details") if isinstance(end, dict) else None
    return isinstance(details, dict) and details.get("sent") is False


def _count(effects: Path) -> Counter[str]:
    return Counter(line for file in effects.iterdir() for line in file.read_text("utf-8").splitlines())
