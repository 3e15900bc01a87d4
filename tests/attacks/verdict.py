"""The properties that must hold during every attack, judged by the figures of the monitor."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.attacks.monitor import Sample, Seen

__all__ = ["HEALTH_S", "MEMORY_MIB", "QUICK_RATIO", "QUICK_S", "Figures", "Row", "figures_of", "judge"]

HEALTH_S = 1.0
QUICK_S = 1.0
QUICK_RATIO = 2.0
MEMORY_MIB = 600.0
_MIB = 1 << 20
_ENOUGH = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds, except `quick_before_ms` and `quick_ms` (medians in milliseconds) and `memory_mib`. None: not observed."""

    health_s: float | None
    health_failed: int
    quick_before_ms: float | None
    quick_ms: float | None
    quick_s: float | None
    quick_failed: int
    memory_mib: float | None

    @property
    def quick_ratio(self) -> float | None:
        return self.quick_ms / self.quick_before_ms if self.quick_ms is not None and self.quick_before_ms else None


@dataclass(frozen=True, slots=True)
class Row:
    """One attack: its answer, the observations, the remains, the time of a stop during it, and the broken properties."""

    kind: str
    name: str
    what: str
    answer: str
    figures: Figures | None
    left: str
    stopped_s: float | None
    faults: tuple[str, ...]


def figures_of(seen: Seen, began: float, ended: float) -> Figures:
    """The figures between the two moments, compared with those before."""
    health, quick = _between(seen.health, began, ended), _between(seen.quick, began, ended)
    before = [sample.took for sample in seen.quick if sample.at + sample.took < began and sample.is_well]
    return Figures(
        health_s=max((sample.took for sample in health), default=None),
        health_failed=sum(not sample.is_well for sample in health),
        quick_before_ms=_median_ms(before),
        quick_ms=_median_ms([sample.took for sample in quick]) if len(quick) >= _ENOUGH else None,
        quick_s=max((sample.took for sample in quick), default=None),
        quick_failed=sum(not sample.is_well for sample in quick),
        memory_mib=max((size / _MIB for at, size in seen.memory if began <= at), default=None),
    )


def judge(figures: Figures, *, may_refuse: bool = False, is_load: bool = False, quick_s: float = QUICK_S) -> list[str]:
    """The broken properties, in words. With `may_refuse` any answer suffices; under load the median is not judged."""
    checks = (
        (figures.health_s is not None and figures.health_s <= HEALTH_S, f"/health took {_s(figures.health_s)}"),
        (figures.quick_s is not None and figures.quick_s <= quick_s, f"a quick call took {_s(figures.quick_s)}"),
        (
            is_load or figures.quick_ratio is None or figures.quick_ratio <= QUICK_RATIO,
            f"quick calls took {figures.quick_ratio or 0:.1f}× as long",
        ),
        (figures.memory_mib is not None and figures.memory_mib <= MEMORY_MIB, f"the service took {figures.memory_mib or 0:,.0f} MiB"),
        (may_refuse or not figures.health_failed, f"/health was not 200 {figures.health_failed} times"),
        (may_refuse or not figures.quick_failed, f"{figures.quick_failed} quick calls failed"),
    )
    return [told for holds, told in checks if not holds]


def _between(samples: Sequence[Sample], began: float, ended: float) -> list[Sample]:
    return [sample for sample in samples if sample.at + sample.took >= began and sample.at <= ended]


def _median_ms(taken: Sequence[float]) -> float | None:
    return statistics.median(taken) * 1000 if taken else None


def _s(seconds: float | None) -> str:
    return "no time: it was never asked" if seconds is None else f"{seconds:.1f} s"
