"""Ways of calling, measured in turns: A B C, A B C, …, so that what else the machine does hits all alike."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import psutil

from bench.generator import Generator
from bench.load import Job
from bench.processes import cpu_seconds
from bench.results import Row, median_row

__all__ = ["Plan", "Target", "measure"]


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
    """One way of calling. `parts` are the processes whose CPU time is told, by what they are."""

    name: str
    label: str
    url: str
    body: str
    parts: Mapping[str, Iterable[psutil.Process]]
    expect: str = '"message"'
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    prelude: tuple[str, ...] = ()

    def job(self, callers: int, seconds: float, calls: int | None = None) -> Job:
        return Job(
            url=self.url,
            body=self.body,
            expect=self.expect,
            callers=callers,
            seconds=seconds,
            calls=calls,
            headers=dict(self.headers),
            prelude=self.prelude,
        )


def measure(generator: Generator, targets: Sequence[Target], plan: Plan) -> tuple[list[Row], list[Row]]:
    """The medians, and every round. Raises WrongAnswersError."""
    rounds: list[Row] = []
    for _, callers in itertools.product(range(plan.rounds), plan.callers):
        for target in targets:
            generator.run(target.job(callers, plan.warm_up_s))
            rounds.append(_measure_once(generator, target, callers, plan))
    by_load = [(target.name, callers) for target in targets for callers in plan.callers]
    return [median_row(row for row in rounds if (row.target, row.callers) == load) for load in by_load], rounds


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
    )
