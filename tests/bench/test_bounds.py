"""The bounds of the measurements report measured figures, and nothing for figures that were not measured."""

import pytest

from bench.bounds import judge
from bench.lanes.calls import calls_of_lanes
from bench.mcp.calls import calls_of_mcp
from bench.results import Results, Row, Single, median_row
from bench.rounds import Target


def _row(target: str, callers: int, p50_ms: float, per_second: float = 1.0) -> Row:
    return Row(target=target, label=target, callers=callers, p50_ms=p50_ms, p99_ms=p50_ms, per_second=per_second, cpu_ms={"tool": p50_ms})


def _judged(*rows: Row, singles: tuple[Single, ...] = ()) -> dict[str, tuple[float | None, bool | None]]:
    results = Results(machine={}, run={}, rows=list(rows), singles=list(singles))
    return {verdict.label: (verdict.ratio, verdict.met) for verdict in judge(results)}


@pytest.mark.parametrize(("ours", "met"), [(1.4, True), (1.41, False)])
def test_a_time_that_is_too_long_is_not_met(ours: float, met: bool) -> None:
    judged = _judged(_row("ours.echo", 1, ours), _row("bare.local", 1, 1.0))
    assert judged["echo: p50 over the bare eager workflow"] == (ours, met)


@pytest.mark.parametrize(("ours", "met"), [(500.0, True), (499.0, False)])
def test_a_rate_that_is_too_low_is_not_met(ours: float, met: bool) -> None:
    judged = _judged(_row("ours.echo", 64, 1, ours), _row("bare.local", 64, 1, 100.0))
    assert judged["echo: calls/s at 64 over the bare eager workflow"] == (ours / 100, met)


@pytest.mark.parametrize(("ours", "met"), [(0.4, True), (0.41, False)])
def test_cpu_time_is_compared_by_process(ours: float, met: bool) -> None:
    rows = [
        _row(target, 64, 1).model_copy(update={"cpu_ms": {"Temporal": cpu}}) for target, cpu in (("ours.echo", ours), ("bare.update", 1))
    ]
    assert _judged(*rows)["echo: Temporal's CPU a call at 64 over bare update's"] == (ours, met)


def test_what_has_no_bound_is_told_and_not_judged() -> None:
    judged = _judged(_row("doors.two", 64, 1, 150.0), _row("doors.one", 64, 1, 100.0))
    assert judged["echo: calls/s at 64 of two doors on PostgreSQL over one"] == (1.5, None)


def test_every_bound_has_a_name_of_its_own() -> None:
    verdicts = judge(Results(machine={}, run={}))
    assert len({verdict.label for verdict in verdicts}) == len(verdicts)


def test_the_bounds_of_lanes_are_judged_by_the_calls_of_lanes() -> None:
    names = ("echo", "key", "free", "acting")
    targets = [*(f"ours.{name}" for name in names), "all.acting", "bare.local", "bare.update", "bare.http"]
    targets += ["fastmcp.echo", "fastmcp.http", "dbos.echo"]
    chosen = calls_of_lanes([Target(name, name, "", "", {}) for name in (*targets, "bare.default")])
    rows = [
        _row(target.name, callers, 1).model_copy(update={"cpu_ms": {"Temporal": 1}})
        for target in chosen
        for callers in target.callers or ()
    ]
    assert sum(met is not None for _, met in _judged(*rows).values()) == 15
    # None of them is measured in vain.
    for row in rows:
        assert sum(met is not None for _, met in _judged(*(one for one in rows if one is not row)).values()) < 15, row


def test_the_bounds_of_mcp_are_judged_by_the_calls_of_mcp() -> None:
    ours = [f"mcp.{revision}.{tool}" for revision in ("session", "single") for tool in ("echo", "free")]
    names = ("ours.echo", "ours.upstream_by_mcp", "ours.upstream_by_http", *ours, "fastmcp.echo", "fastmcp.http", "contextforge.http")
    chosen = calls_of_mcp([Target(name, name, "", "", {}) for name in (*names, "bare.local")])
    rows = [_row(target.name, callers, 1) for target in chosen for callers in target.callers or ()]
    assert sum(met is not None for _, met in _judged(*rows).values()) == 11
    # None of them is measured in vain.
    for row in rows:
        assert sum(met is not None for _, met in _judged(*(one for one in rows if one is not row)).values()) < 11, row


def test_a_bound_without_a_peer_is_a_size() -> None:
    idle = Single(name="memory.idle", label="idle", value=499.0, unit="MiB")
    assert _judged(singles=(idle,))["resident when idle, everything"] == (499.0, True)


def test_what_was_not_measured_is_neither_met_nor_not() -> None:
    assert set(_judged(_row("ours.echo", 1, 1.0)).values()) == {(None, None)}


def test_the_median_of_rounds_is_taken_figure_by_figure() -> None:
    rounds = [_row("plain", 1, 1.0, 30.0), _row("plain", 1, 3.0, 10.0), _row("plain", 1, 2.0, 20.0)]
    assert median_row(rounds) == _row("plain", 1, 2.0, 20.0)
