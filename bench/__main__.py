"""`python -m bench`: starts everything, measures it in turns, says what was reached, leaves nothing behind but its results."""

import argparse
import signal
import sys
import tempfile
from collections import abc
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
from rich.console import Console

from bench.against import NoSuchCommitError, checked_out, judge_against
from bench.bounds import judge
from bench.chats.checking import Amount, check_chats
from bench.cold_start import measure_cold_starts
from bench.generator import Generator, WrongAnswersError
from bench.isolation import EngineMissingError, measure_commands, measure_launches, measure_scripts
from bench.keeping import measure_keeping
from bench.lanes.calls import PEERS as PEERS_OF_LANES
from bench.lanes.calls import calls_of_lanes
from bench.lanes.doors import measure_doors
from bench.lanes.killed import measure_kills
from bench.lanes.slow import measure_slow_calls
from bench.machine import describe_machine, load_average, server_settings
from bench.making import NotMadeError, measure_builds, measure_deploys, measure_history, workshop
from bench.mcp.calls import PEERS as PEERS_OF_MCP
from bench.mcp.calls import calls_of_mcp
from bench.mcp.pages import measure_pages
from bench.mcp.sessions import measure_sessions
from bench.memory import measure_memory
from bench.processes import NotReadyError, end_in_order
from bench.profile import NoProfilerError, measure_profile
from bench.programs import measure_programs
from bench.report import show, write
from bench.results import Results
from bench.rounds import Measurements, Plan, measure
from bench.scale import Sizes, measure_scale
from bench.search.measuring import measure_search
from bench.service import ROOT, Tree
from bench.stage import OURS, PEERS, THEN, Stage, side_by_side
from bench.starts import measure_starts

PIECES = ("calls", "lanes", "cold", "isolation", "making", "starts", "scale", "memory", "keeping", "profile", "search", "chats", "mcp")
_WITH_IT = {"lanes": ("scale", "memory")}
"""What a piece is not whole without."""

_CALLERS = (1, 16, 64)
_KEPT = 50
_SEARCHES = (3, 5)
"""Turns of the ways of searching, and rounds of all queries in each."""


_UNMEASURED = (WrongAnswersError, NotReadyError, EngineMissingError, NotMadeError, NoProfilerError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of everything."""

    plan: Plan
    cold_starts: int
    turns: int
    makes: int
    tool_calls: int
    sizes: Sizes
    memory_calls: int
    rest_s: float
    kills: int
    lane_rounds: int
    profile_s: float
    keeping_s: float
    chats: Amount
    mcp_sessions: tuple[int, int]

    @property
    def plan_of_lanes(self) -> Plan:
        return replace(self.plan, rounds=self.lane_rounds)


_FULL = Extent(
    Plan(5, 3.0, _CALLERS, 0.5), 9, 100, 3, 200, Sizes(10_000, 1_000_000), 100_000, 10.0, 3, 3, 10.0, 120.0, Amount(), (1_000, 5_000)
)
_QUICK = Extent(
    Plan(1, 1.0, _CALLERS, 0.3), 2, 10, 1, 20, Sizes(1_000, 50_000), 4_000, 2.0, 1, 1, 3.0, 30.0, Amount(chats=100, long=200), (200, 1_000)
)


def main(arguments: Sequence[str]) -> int:
    """Returns 1 when something could not be measured, else 0: what is not met is a finding, not a failure."""
    asked = _asked(arguments)
    console = Console(width=None if sys.stdout.isatty() else 180)
    signal.signal(signal.SIGTERM, end_in_order)
    extent = _extent(asked)
    pieces = _pieces(asked)
    peers = [peer for peer in asked.peers.split(",") if peer in PEERS and not asked.against]
    if "calls" not in pieces:
        also = {"lanes": PEERS_OF_LANES, "mcp": PEERS_OF_MCP}
        peers = [peer for peer in peers if any(peer in theirs for piece, theirs in also.items() if piece in pieces)]
    before = load_average()
    results = Results(machine=describe_machine(), run={})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tool-agent-bench-")))
        # PostgreSQL runs as an ordinary user and has to find its way in.
        folder.chmod(0o711)
        try:
            other = stack.enter_context(checked_out(asked.against, folder)) if asked.against else None
        except NoSuchCommitError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        generator = stack.enter_context(Generator(ROOT))
        Run(results, folder, generator, extent, other).measure(pieces, peers, asked.targets)
    plan = extent.plan
    results.run = {
        # Without the name of a folder of this machine.
        "command": " ".join(("python -m bench", *("…" if part == str(asked.results) else part for part in arguments))),
        "taken": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "rounds": f"{plan.rounds} ({extent.lane_rounds} for what only lanes need) of {_length(plan)} after {plan.warm_up_s:g} s of warm-up,"
        " in turns; medians of rounds",
        "load average": f"{before} before, {load_average()} after",
        "Temporal's settings": f"{server_settings()} (everywhere but in the row on its defaults, which keeps nothing on disk)",
    }
    if asked.quick:
        results.remarks.append(f"A quick run: {extent.sizes.tools:,} tools, {extent.sizes.records:,} records, {extent.memory_calls} calls.")
    results.verdicts = judge_against(results.rounds, asked.against) if asked.against else judge(results)
    show(results, console)
    name = asked.name or f"{datetime.now(UTC):%Y-%m-%d}{'-quick' if asked.quick else ''}"
    for path in write(results, asked.results, name):
        console.print(f"written: {path.name}", highlight=False)
    return 1 if results.failures else 0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the measurements into `results`, in `folder`; the calls beside those of the `other` tree, if there is one."""

    results: Results
    folder: Path
    generator: Generator
    extent: Extent
    other: Tree | None = None

    def measure(self, pieces: Sequence[str], peers: Sequence[str], targets: str | None) -> None:
        """A piece that fails is told and left out: the others are still worth knowing."""
        if {"calls", "lanes", "mcp", "cold", "isolation"} & set(pieces):
            with Stage(self.folder, peers, self.other) as stage:
                self.results.remarks += stage.remarks
                if {"calls", "lanes", "mcp"} & set(pieces):
                    self._calls(stage, targets, pieces)
                if "cold" in pieces:
                    with self._telling("cold"):
                        self.results.singles += measure_cold_starts(stage.service, self.folder, self.extent.cold_starts)
                if "isolation" in pieces:
                    self._isolation(stage)
        for piece, measured in (
            ("making", self._making),
            ("starts", self._starts),
            ("lanes", self._lanes),
            ("scale", self._scale),
            ("memory", self._memory),
            ("keeping", self._keeping),
            ("profile", self._profile),
            ("search", self._search),
            ("chats", self._chats),
            ("mcp", self._mcp),
        ):
            if piece in pieces:
                with self._telling(piece):
                    measured()

    def _calls(self, stage: Stage, targets: str | None, pieces: Sequence[str]) -> None:
        wanted = targets.split(",") if targets else [""]
        # What is asked of ours is meant of the other tree too.
        also = [name.replace(OURS, THEN, 1) for name in wanted if name.startswith(OURS)]
        chosen = side_by_side([target for target in stage.targets if target.name.startswith((*wanted, *also))])
        if "calls" in pieces:
            self._take(measure(self.generator, chosen, self.extent.plan))
        else:
            of_pieces = {"lanes": calls_of_lanes, "mcp": calls_of_mcp}
            for of_piece in (of_piece for piece, of_piece in of_pieces.items() if piece in pieces):
                self._take(measure(self.generator, of_piece(chosen), self.extent.plan_of_lanes))
        with self._telling("lanes of the calls"):
            self.results.singles += stage.lane_shares()

    def _isolation(self, stage: Stage) -> None:
        turns = self.extent.turns
        for piece, measured in (
            ("launches", lambda: measure_launches(self.folder / "launches", turns)),
            ("scripts", lambda: measure_scripts(stage.service, turns)),
            ("commands", lambda: measure_commands(self.folder / "commands", turns)),
        ):
            with self._telling(piece):
                self.results.singles += measured()

    def _making(self) -> None:
        with workshop(self.folder / "making", self.extent.tool_calls) as shop:
            for piece, measured in (
                ("builds", lambda: measure_builds(shop, self.extent.makes)),
                ("deploys", lambda: measure_deploys(shop, self.extent.makes)),
                ("programs", lambda: measure_programs(shop, self.extent.makes, self.extent.turns)),
                ("history", lambda: measure_history(shop)),
            ):
                with self._telling(piece):
                    self.results.singles += measured()

    def _starts(self) -> None:
        self.results.singles += measure_starts(self.folder / "starts", self.extent.turns)

    def _lanes(self) -> None:
        """The calls of it are measured with all calls."""
        with self._telling("slow calls"):
            made, singles = measure_slow_calls(self.generator, self.folder, self.extent.plan_of_lanes)
            self._take(made)
            self.results.singles += singles
        with self._telling("kills"):
            self.results.singles += measure_kills(self.generator, self.folder, self.extent.kills)
        with self._telling("doors"):
            self._take(measure_doors(self.generator, self.folder / "doors", self.extent.plan_of_lanes))

    def _profile(self) -> None:
        self.results.profiles += measure_profile(self.generator, self.folder, self.extent.profile_s, self.extent.plan.warm_up_s)

    def _scale(self) -> None:
        plan = replace(self.extent.plan_of_lanes, callers=(1, 64))
        made, singles = measure_scale(self.generator, self.folder, plan, self.extent.sizes)
        self._take(made)
        self.results.singles += singles

    def _memory(self) -> None:
        self.results.singles += measure_memory(self.generator, self.folder, self.extent.memory_calls, self.extent.rest_s)

    def _keeping(self) -> None:
        self.results.singles += measure_keeping(self.folder, _KEPT, self.extent.keeping_s)

    def _search(self) -> None:
        full = self.extent.sizes.tools == _FULL.sizes.tools
        self.results.singles += measure_search(self.extent.sizes.tools, *(_SEARCHES if full else (1, 1)))

    def _chats(self) -> None:
        checked = check_chats(self.folder / "chats", self.extent.chats)
        self.results.singles += checked.singles()
        self.results.remarks += [f"- BROKEN {fault}" for fault in checked.faults]

    def _mcp(self) -> None:
        """The calls of it are measured with all calls."""
        with self._telling("pages"):
            self._take(measure_pages(self.generator, self.folder, self.extent.plan_of_lanes, self.extent.sizes.tools))
        with self._telling("sessions"):
            self.results.singles += measure_sessions(self.folder, *self.extent.mcp_sessions)

    def _take(self, made: Measurements) -> None:
        self.results.rows += made.rows
        self.results.rounds += made.rounds
        self.results.failures += made.failures

    @contextmanager
    def _telling(self, piece: str) -> abc.Generator[None]:
        try:
            yield
        except (*_UNMEASURED, httpx.HTTPError) as error:
            self.results.failures.append(f"{piece}: {type(error).__name__}: {error}")


def _length(plan: Plan) -> str:
    return f"{plan.seconds:g} s" if plan.calls is None else f"{plan.calls} calls"


def _extent(asked: argparse.Namespace) -> Extent:
    chosen = _QUICK if asked.quick else _FULL
    callers = tuple(int(part) for part in asked.callers.split(",")) if asked.callers else chosen.plan.callers
    plan = Plan(asked.rounds or chosen.plan.rounds, asked.seconds or chosen.plan.seconds, callers, chosen.plan.warm_up_s, asked.calls)
    return replace(chosen, plan=plan, lane_rounds=asked.rounds or chosen.lane_rounds)


def _pieces(asked: argparse.Namespace) -> list[str]:
    wanted: Sequence[str] = asked.only or PIECES
    return [piece for piece in PIECES if piece in wanted or any(piece in _WITH_IT.get(one, ()) for one in wanted)]


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.against and asked.only != ["calls"]:
        parser.error("only calls are measured against another commit: --only calls --against COMMIT")
    return asked


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, smaller sizes")
    parser.add_argument("--only", action="append", choices=PIECES, help="measure only this piece; may be given again")
    parser.add_argument("--against", metavar="COMMIT", help="with --only calls: the same rows of another commit in turns, and the ratios")
    parser.add_argument("--targets", metavar="A,B", help="of the calls only those whose names begin like this: ours.echo,bare")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="A,B", help=f"start only these peers, of {','.join(PEERS)}")
    parser.add_argument("--callers", metavar="1,16", help="numbers of callers")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="length of one measurement")
    parser.add_argument("--calls", type=int, help="calls of one measurement, instead of its length")
    parser.add_argument("--name", help="of the files of the results; default: the date")
    parser.add_argument("--results", type=Path, default=ROOT / "bench/results", help="folder of the results")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
