"""Ways of calling, measured in turns: A B C, A B C, …, so that what else the machine does hits all alike."""

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import psutil

from bench.generator import Generator, WrongAnswersError
from bench.load import Job
from bench.processes import cpu_seconds
from bench.results import Row, median_row


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: each measurement takes `seconds`, or makes `calls` when those are given."""

    rounds: int
    seconds: float
    callers: Sequence[int]
    warm_up_s: float
    calls: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """One way of calling, with these numbers of `callers` only (None: any). `parts` are the processes whose CPU time is told.

    `before` is what happens before each measurement, instead of a warm-up; `own` is what each caller has alone.
    """

    name: str
    label: str
    url: str
    body: str
    parts: Mapping[str, Iterable[psutil.Process]]
    expect: str = '"message"'
    notes: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    prelude: tuple[str, ...] = ()
    callers: Collection[int] | None = None
    before: Callable[[], object] | None = None
    own: tuple[str, ...] = ()

    def job(self, callers: int, seconds: float, calls: int | None = None) -> Job:
        return Job(
            url=self.url,
            body=self.body,
            expect=self.expect,
            notes=self.notes,
            callers=callers,
            seconds=seconds,
            calls=calls,
            headers=dict(self.headers),
            prelude=self.prelude,
            own=self.own,
        )


@dataclass(slots=True)
class Measurements:
    """The medians, every round, and what could not be measured and why."""

    rows: list[Row] = field(default_factory=list[Row])
    rounds: list[Row] = field(default_factory=list[Row])
    failures: list[str] = field(default_factory=list[str])

    def add(self, other: "Measurements") -> None:
        self.rows += other.rows
        self.rounds += other.rounds
        self.failures += other.failures


def measure(generator: Generator, targets: Sequence[Target], plan: Plan) -> Measurements:
    """A way of calling that answers wrongly, or not within a minute, is told and left out: the others are still worth knowing.

    It has no row then, also if it answered in other rounds: a median of those that went well would be too good.
    """
    made = Measurements()
    failed: set[tuple[str, int]] = set()
    # All rounds of few callers come first, and every second one goes backwards: nobody always comes after the same neighbour.
    for callers, number in itertools.product(sorted(plan.callers), range(plan.rounds)):
        for target in _measured_with(callers, targets)[:: -1 if number % 2 else 1]:
            try:
                if target.before is None:
                    generator.run(target.job(callers, plan.warm_up_s))
                else:
                    target.before()
                made.rounds.append(_measure_once(generator, target, callers, plan))
            except WrongAnswersError as error:
                failed.add((target.name, callers))
                made.failures.append(f"{target.name} with {callers} callers: {error}")
    for target, callers in itertools.product(targets, plan.callers):
        rounds = [row for row in made.rounds if (row.target, row.callers) == (target.name, callers)]
        if rounds and (target.name, callers) not in failed:
            made.rows.append(median_row(rounds))
    return made


def _measured_with(callers: int, targets: Sequence[Target]) -> Sequence[Target]:
    return [target for target in targets if target.callers is None or callers in target.callers]


def _measure_once(generator: Generator, target: Target, callers: int, plan: Plan) -> Row:
    parts = {**target.parts, "load generator": generator.processes}
    before = {part: cpu_seconds(processes) for part, processes in parts.items()}
    measured = generator.run(target.job(callers, plan.seconds, plan.calls))
    used = {part: (cpu_seconds(processes) - before[part]) * 1000 / measured.calls for part, processes in parts.items()}
    return Row(
        target=target.name,
        label=target.label,
        callers=callers,
        p50_ms=measured.p50_ms,
        p99_ms=measured.p99_ms,
        per_second=measured.per_second,
        cpu_ms=used,
        noted=measured.noted / measured.calls if target.notes else None,
    )
