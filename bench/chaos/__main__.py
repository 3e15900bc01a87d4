"""`python -m bench.chaos`: a thousand calls while processes are killed; ends with 1 when a promise was broken."""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.chaos.callers import Asked, Callers
from bench.chaos.cast import Cast, DatabaseKind
from bench.chaos.killing import kill_all, revive, stopped
from bench.chaos.plan import KINDS, Door, plan_calls, plan_kills
from bench.chaos.renting import rent
from bench.chaos.truth import Fate, broken_promises, fates_of, running_workflows, useless_tools
from bench.chaos.visiting import visit
from bench.machine import load_average
from bench.processes import end_in_order
from bench.service import ROOT
from toolagent_service.contracts.lanes import LaneMode
from workers.temporal.dev_server import read_config


def main(arguments: Sequence[str]) -> int:
    """Returns 1 when a promise was broken, else 0."""
    asked = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    signal.signal(signal.SIGTERM, end_in_order)
    if asked.sessions:
        return rent(asked, console)
    if asked.mcp:
        return visit(asked, console)
    began, load = time.monotonic(), load_average()
    with tempfile.TemporaryDirectory(prefix="tool-agent-chaos-") as name:
        folder = Path(name)
        # PostgreSQL runs as an ordinary user and has to find its way in.
        folder.chmod(0o711)
        with Cast(folder, asked.lanes, asked.database) as cast:
            lanes = asked.lanes or "by default"
            console.print(f"seed {asked.seed}, {asked.calls} calls, {cast.database}, lanes {lanes}; everybody is up", highlight=False)
            fates, faults = asyncio.run(_act(cast, asked, console))
            cast.stop()
            faults += [f"left over: {left}" for left in cast.leftovers()]
    if folder.exists():
        faults.append("left over: the folder of the run")
    _show(console, fates, faults)
    killed = ", ".join(f"{victim} {number}" for victim, number in cast.kills.items())
    console.print(
        f"killed {sum(cast.kills.values())} times: {killed}; seed {asked.seed}; {time.monotonic() - began:.0f} s", highlight=False
    )
    revived = ", ".join(f"{victim} {number}" for victim, number in cast.revivals.items() if number)
    console.print(f"ended by themselves and were started again: {revived or 'none'}", highlight=False)
    console.print(f"load average {load} before, {load_average()} after", highlight=False)
    return 1 if faults else 0


async def _act(cast: Cast, asked: argparse.Namespace, console: Console) -> tuple[list[Fate], list[str]]:
    callers = Callers(cast.urls, cast.effects)
    kills = asyncio.create_task(kill_all(cast, plan_kills(asked.seed, asked.kills), asked.duration, console))
    revivals = asyncio.create_task(revive(cast))
    try:
        told = await callers.ask_all(plan_calls(asked.seed, asked.calls), asked.callers)
        await stopped(kills)
        cast.ready()
        fates = await fates_of(told, callers, cast.urls, cast.effects)
        namespace = read_config(ROOT / "temporal-dev.yaml").namespace
        running = await running_workflows(cast.temporal_address, namespace, cast.urls[Door.UP])
    finally:
        await stopped(kills)
        await stopped(revivals)
    faults = [fault for fate in fates for fault in broken_promises(fate)]
    return fates, [*faults, *(f"{workflow} still runs" for workflow in running), *useless_tools(fates)]


def _show(console: Console, fates: Sequence[Fate], faults: Sequence[str]) -> None:
    outcomes = sorted({fate.outcome for fate in fates})
    table = Table(title="Chaos: how the calls ended", title_justify="left")
    for column in ("kind", "calls", "accepted", *outcomes, "asked", "cancels taken", "said not sent", "effects", "most of one"):
        table.add_column(column, justify="left" if column == "kind" else "right")
    groups = {kind: [fate for fate in fates if fate.asked.call.kind == kind] for kind in KINDS}
    groups |= {f"through {door}": [fate for fate in fates if fate.asked.call.door is door] for door in Door}
    groups["to be cancelled"] = [fate for fate in fates if fate.asked.call.cancel_after_s is not None]
    for name, of_group in groups.items():
        if of_group:
            table.add_row(name, *_counts(of_group, outcomes), end_section=name == [*KINDS][-1])
    table.add_row("all", *_counts(fates, outcomes), style="bold")
    console.print(table)
    if faults:
        console.print(f"BROKEN: {len(faults)}", style="red")
        for fault in faults:
            console.print(f"  {fault}", markup=False, highlight=False, soft_wrap=True)
    else:
        console.print(
            "Every accepted call ended with one result; nothing that acts once acted twice; what was said not to have been sent was not; "
            "nothing is left over."
        )


def _counts(fates: Sequence[Fate], outcomes: Sequence[str]) -> list[str]:
    ended = Counter(fate.outcome for fate in fates)
    asked: list[Asked] = [fate.asked for fate in fates]
    effects = [fate.effects for fate in fates]
    numbers = [
        len(fates),
        sum(one.accepted for one in asked),
        *(ended[outcome] for outcome in outcomes),
        sum(one.attempts for one in asked),
        sum(one.is_cancelled for one in asked),
        sum(fate.is_said_unsent for fate in fates),
        sum(effects),
        max(effects),
    ]
    return [f"{number:,}" for number in numbers]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what is asked and who is killed follows from it")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--sessions", type=int, default=0, help="so many sessions of a group at a failing provider, instead of calls")
    parser.add_argument("--mcp", type=int, default=0, help="so many calls by MCP clients of an imported server, instead of calls")
    parser.add_argument("--kills", type=int, default=60, help="at most so many")
    parser.add_argument("--callers", type=int, default=12, help="who ask at once")
    parser.add_argument("--lanes", type=LaneMode, choices=LaneMode, help="which calls share a lane; default: the service's")
    parser.add_argument("--database", type=DatabaseKind, choices=DatabaseKind, help="default: PostgreSQL where it is installed")
    parser.add_argument("--duration", type=float, default=300.0, help="seconds after which nobody is killed any more")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
