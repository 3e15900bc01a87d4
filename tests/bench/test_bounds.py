"""The bounds of the measurements say what was measured, and nothing when it was not."""

import pytest

from bench.bounds import judge
from bench.results import Results, Row, Single, median_row


def _row(target: str, callers: int, p50_ms: float, per_second: float = 1.0) -> Row:
    return Row(target=target, label=target, callers=callers, p50_ms=p50_ms, p99_ms=p50_ms, per_second=per_second, cpu_ms={"tool": p50_ms})


def _judged(*rows: Row, singles: tuple[Single, ...] = ()) -> dict[str, tuple[float | None, bool | None]]:
    results = Results(machine={}, run={}, rows=list(rows), singles=list(singles))
    return {verdict.label: (verdict.ratio, verdict.met) for verdict in judge(results)}


@pytest.mark.parametrize(("ours", "met"), [(1.8, True), (1.81, False)])
def test_a_time_that_is_too_long_is_not_met(ours: float, met: bool) -> None:
    judged = _judged(_row("ours.fast", 1, ours), _row("bare.local", 1, 1.0))
    assert judged["fast path: p50 over the bare eager workflow with a local activity"] == (ours, met)


@pytest.mark.parametrize(("ours", "met"), [(50.0, True), (49.0, False)])
def test_a_rate_that_is_too_low_is_not_met(ours: float, met: bool) -> None:
    judged = _judged(_row("ours.fast", 64, 1, ours), _row("bare.local", 64, 1, 100.0))
    assert judged["fast path: calls/s at 64 over the same"] == (ours / 100, met)


def test_a_bound_without_a_peer_is_a_size() -> None:
    idle = Single(name="memory.idle", label="idle", value=499.0, unit="MiB")
    assert _judged(singles=(idle,))["resident when idle, everything"] == (499.0, True)


def test_what_was_not_measured_is_neither_met_nor_not() -> None:
    assert set(_judged(_row("ours.fast", 1, 1.0)).values()) == {(None, None)}


def test_the_median_of_rounds_is_taken_figure_by_figure() -> None:
    rounds = [_row("plain", 1, 1.0, 30.0), _row("plain", 1, 3.0, 10.0), _row("plain", 1, 2.0, 20.0)]
    assert median_row(rounds) == _row("plain", 1, 2.0, 20.0)
