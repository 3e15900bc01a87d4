"""What a run has measured, as it is written down."""

import statistics
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict


class Row(BaseModel):
    """One way of calling under one load: medians of the rounds. `cpu_ms` is CPU time per call by process, in milliseconds.

    `noted` is the share of the calls that took a lane; None where that is not asked.
    """

    model_config = ConfigDict(frozen=True)

    target: str
    label: str
    callers: int
    p50_ms: float
    p99_ms: float
    per_second: float
    cpu_ms: Mapping[str, float]
    noted: float | None = None


class Single(BaseModel):
    """One number that is not about load: seconds, MiB, a count."""

    model_config = ConfigDict(frozen=True)

    name: str
    label: str
    value: float
    unit: str


class Verdict(BaseModel):
    """A bound of the issue. `ratio` and `met` are None when a part of it was not measured in this run, `met` also without a `bound`."""

    model_config = ConfigDict(frozen=True)

    label: str
    sign: str
    bound: float | None
    unit: str
    ratio: float | None
    met: bool | None


class Profile(BaseModel):
    """Milliseconds of CPU a call by part of the service, with lanes in this `way` and so many callers."""

    model_config = ConfigDict(frozen=True)

    way: str
    callers: int
    per_second: float
    ms: Mapping[str, float]


class Results(BaseModel):
    """Everything, as in the JSON file."""

    machine: Mapping[str, str]
    run: Mapping[str, str]
    rows: list[Row] = []
    singles: list[Single] = []
    profiles: list[Profile] = []
    verdicts: list[Verdict] = []
    rounds: list[Row] = []
    remarks: list[str] = []
    failures: list[str] = []

    def row(self, target: str, callers: int) -> Row | None:
        return next((row for row in self.rows if (row.target, row.callers) == (target, callers)), None)

    def single(self, name: str) -> float | None:
        return next((one.value for one in self.singles if one.name == name), None)


def median_row(rounds: Iterable[Row]) -> Row:
    """Of rounds of one target under one load."""
    rows = list(rounds)
    first = rows[0]
    return first.model_copy(
        update={
            "p50_ms": statistics.median(row.p50_ms for row in rows),
            "p99_ms": statistics.median(row.p99_ms for row in rows),
            "per_second": statistics.median(row.per_second for row in rows),
            "noted": statistics.median(row.noted or 0.0 for row in rows) if first.noted is not None else None,
            "cpu_ms": {part: statistics.median(row.cpu_ms[part] for row in rows) for part in first.cpu_ms},
        }
    )
