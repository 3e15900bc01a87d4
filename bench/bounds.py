"""What has to be reached, as ratios of what one run has measured."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.results import Results, Verdict
from bench.service import HTTP_FREE, SHIPPED

Value = Callable[[Results], float | None]

_AT_MOST, _AT_LEAST = "≤", "≥"


@dataclass(frozen=True, slots=True)
class Bound:
    """`of` / `to` has to be at most, or at least, `bound`; without `to`, `of` itself, or what it has more than `over`, in `unit`."""

    label: str
    sign: str
    bound: float
    of: Value
    to: Value | None = None
    over: Value | None = None
    unit: str = "×"


def _p50(target: str, callers: int = 1) -> Value:
    return lambda results: row.p50_ms if (row := results.row(target, callers)) else None


def _rate(target: str, callers: int) -> Value:
    return lambda results: row.per_second if (row := results.row(target, callers)) else None


def _single(name: str) -> Value:
    return lambda results: results.single(name)


def _times_or_more(name: str, times: float, more: float) -> Value:
    """What is allowed where either is: so many times as much, or so much more."""
    return lambda results: max(value * times, value + more) if (value := results.single(name)) is not None else None


_BOUNDS = (
    Bound("fast path: p50 over the bare eager workflow with a local activity", _AT_MOST, 1.8, _p50("ours.fast"), _p50("bare.local")),
    Bound("fast path: calls/s at 64 over the same", _AT_LEAST, 0.5, _rate("ours.fast", 64), _rate("bare.local", 64)),
    Bound("fast path: p50 over workflow + activity on the server's defaults", _AT_MOST, 0.2, _p50("ours.fast"), _p50("bare.default")),
    Bound("tool with side effects: p50 over bare workflow + activity + HTTP", _AT_MOST, 1.5, _p50("ours.acting"), _p50("bare.http")),
    Bound("tool with side effects: calls/s at 16 over the same", _AT_LEAST, 0.6, _rate("ours.acting", 16), _rate("bare.http", 16)),
    Bound("tool with side effects: calls/s at 64 over the same", _AT_LEAST, 0.6, _rate("ours.acting", 64), _rate("bare.http", 64)),
    Bound("tool without side effects: calls/s at 16 over FastMCP", _AT_LEAST, 0.3, _rate("ours.free", 16), _rate("fastmcp.http", 16)),
    Bound(
        "the same over FastMCP at its fastest, without sessions", _AT_LEAST, 0.3, _rate("ours.free", 16), _rate("fastmcp.sessionless", 16)
    ),
    *(
        Bound(f"cold start of {tool} over by hand", _AT_MOST, 1.5, _single(f"cold.ours.{tool}"), _single(f"cold.hand.{tool}"))
        for tool in (HTTP_FREE, SHIPPED)
    ),
    Bound("sandboxed launch: more than a plain process", _AT_MOST, 12, _single("launch.ours"), over=_single("launch.bare"), unit="ms"),
    Bound("warm script call: more than by hand", _AT_MOST, 60, _single("script.ours"), over=_single("script.bare"), unit="ms"),
    Bound("warm script call, with side effects: the same", _AT_MOST, 60, _single("script.acting"), over=_single("script.bare"), unit="ms"),
    Bound("command in a container over the bare engine's", _AT_MOST, 2, _single("command.ours"), _single("command.bare")),
    Bound("serving container: p50 over bare workflow + activity + HTTP", _AT_MOST, 1.5, _p50("ours.container"), _p50("bare.http")),
    Bound("build of ten turns over its model and its commands by hand", _AT_MOST, 1.25, _single("build.ours"), _single("build.hand")),
    Bound("the same over its model and its uses of tools in its log", _AT_MOST, 1.25, _single("build.ours"), _single("build.log")),
    Bound(
        "deploy without a model over 6 times by hand, or by hand and 8 s",
        _AT_MOST,
        1,
        _single("deploy.ours"),
        _times_or_more("deploy.hand", 6, 8_000),
    ),
    Bound(
        "program from nothing, called once, over 3 times `uv tool install` and `--help`, or these and 6 s",
        _AT_MOST,
        1,
        _single("program.anew"),
        _times_or_more("program.hand", 3, 6_000),
    ),
    Bound("warm call of a program over one of a script", _AT_MOST, 1.5, _single("program.call"), _single("program.script")),
    Bound("the same over one of a script with side effects", _AT_MOST, 1.5, _single("program.call"), _single("program.acting")),
    Bound("history of a task of 200 tool calls, all runs", _AT_MOST, 5, _single("history.200.all"), unit="MB"),
    Bound("`toolagent --help` over a bare typer app's", _AT_MOST, 1.5, _single("start.help.ours"), _single("start.help.bare")),
    Bound("`import toolagent` over `import pydantic`", _AT_MOST, 1.5, _single("start.import.ours"), _single("start.import.bare")),
    Bound("p50 with many tools and records over few and none", _AT_MOST, 1.2, _p50("scale.both"), _p50("scale.few")),
    Bound("resident when idle, everything", _AT_MOST, 500, _single("memory.idle"), unit="MiB"),
    Bound("resident after all calls over after half of them", _AT_MOST, 1.25, _single("memory.full"), _single("memory.half")),
)


def judge(results: Results) -> list[Verdict]:
    """Each bound with what it came to; None where this run has not measured it."""
    return [_verdict(bound, results) for bound in _BOUNDS]


def _verdict(bound: Bound, results: Results) -> Verdict:
    of, to = bound.of(results), bound.to(results) if bound.to else 1.0
    over = bound.over(results) if bound.over else 0.0
    ratio = None if of is None or over is None or not to else (of - over) / to
    met = None if ratio is None else (ratio <= bound.bound if bound.sign == _AT_MOST else ratio >= bound.bound)
    return Verdict(label=bound.label, sign=bound.sign, bound=bound.bound, unit=bound.unit, ratio=ratio, met=met)
