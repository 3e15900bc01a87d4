"""What has to be reached, as ratios of what one run has measured."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.results import Results, Verdict
from bench.service import HTTP_FREE, SHIPPED

Value = Callable[[Results], float | None]

_AT_MOST, _AT_LEAST = "≤", "≥"


@dataclass(frozen=True, slots=True)
class Bound:
    """`of` / `to` has to be at most, or at least, `bound`; without `to`, `of` itself, or what it has more than `over`, in `unit`.

    Without a `bound` it is told and not judged.
    """

    label: str
    sign: str
    bound: float | None
    of: Value
    to: Value | None = None
    over: Value | None = None
    unit: str = "×"


def _p50(target: str, callers: int = 1) -> Value:
    return lambda results: row.p50_ms if (row := results.row(target, callers)) else None


def _rate(target: str, callers: int) -> Value:
    return lambda results: row.per_second if (row := results.row(target, callers)) else None


def _cpu(target: str, callers: int, part: str) -> Value:
    return lambda results: row.cpu_ms.get(part) if (row := results.row(target, callers)) else None


def _single(name: str) -> Value:
    return lambda results: results.single(name)


def _without(whole: Value, part: Value) -> Value:
    def value(results: Results) -> float | None:
        of, less = whole(results), part(results)
        return None if of is None or less is None else of - less

    return value


def _times_or_more(name: str, times: float, more: float) -> Value:
    """What is allowed where either is: so many times as much, or so much more."""
    return lambda results: max(value * times, value + more) if (value := results.single(name)) is not None else None


def _bounds_of_mcp(name: str, revision: str) -> list[Bound]:
    echo, free, by = f"mcp.{name}.echo", f"mcp.{name}.free", f"by MCP {revision}"
    gateways = [
        Bound(
            f"tool without side effects {by}: calls/s at {callers} over ContextForge's",
            _AT_LEAST,
            1,
            _rate(free, callers),
            _rate("contextforge.http", callers),
        )
        for callers in (16, 64)
    ]
    return [
        Bound(f"echo {by}: p50 over POST /run_tool", _AT_MOST, 1.3, _p50(echo), _p50("ours.echo")),
        Bound(f"echo {by}: calls/s at 16 over FastMCP's echo", _AT_LEAST, 0.5, _rate(echo, 16), _rate("fastmcp.echo", 16)),
        Bound(
            f"tool without side effects {by}: calls/s at 16 over FastMCP's same call",
            _AT_LEAST,
            0.8,
            _rate(free, 16),
            _rate("fastmcp.http", 16),
        ),
        *gateways,
    ]


_BOUNDS = (
    Bound("echo: calls/s at 64 over the bare eager workflow", _AT_LEAST, 5, _rate("ours.echo", 64), _rate("bare.local", 64)),
    Bound("echo: calls/s at 64 over bare update", _AT_LEAST, 1.2, _rate("ours.echo", 64), _rate("bare.update", 64)),
    *(
        Bound(f"echo: calls/s at {callers} over {peer}", _AT_LEAST, bound, _rate("ours.echo", callers), _rate(target, callers))
        for peer, target, bounds in (("DBOS", "dbos.echo", {16: 2, 64: 4}), ("FastMCP's echo", "fastmcp.echo", {16: 0.8, 64: 1.8}))
        for callers, bound in bounds.items()
    ),
    *(
        Bound(
            f"tool without side effects: calls/s at {callers} over FastMCP's same call",
            _AT_LEAST,
            bound,
            _rate("ours.free", callers),
            _rate("fastmcp.http", callers),
        )
        for callers, bound in ((16, 1.3), (64, 1.5))
    ),
    Bound(
        "the same at 16 over FastMCP at its fastest, without sessions",
        _AT_LEAST,
        0.3,
        _rate("ours.free", 16),
        _rate("fastmcp.sessionless", 16),
    ),
    Bound(
        "tool with side effects in a lane: calls/s at 16 over bare workflow + activity + HTTP",
        _AT_LEAST,
        3,
        _rate("all.acting", 16),
        _rate("bare.http", 16),
    ),
    Bound("echo: p50 over the bare eager workflow", _AT_MOST, 1.4, _p50("ours.echo"), _p50("bare.local")),
    Bound("echo: p50 at 64 over the same", _AT_MOST, 0.25, _p50("ours.echo", 64), _p50("bare.local", 64)),
    Bound("echo: p50 over workflow + activity on the server's defaults", _AT_MOST, 0.2, _p50("ours.echo"), _p50("bare.default")),
    Bound(
        "echo: Temporal's CPU a call at 64 over bare update's",
        _AT_MOST,
        0.4,
        _cpu("ours.echo", 64, "Temporal"),
        _cpu("bare.update", 64, "Temporal"),
    ),
    Bound("echo: calls/s at 64 with a key over without", _AT_LEAST, 0.7, _rate("ours.key", 64), _rate("ours.echo", 64)),
    Bound("acting call of 300 ms that moves: p50 over without lanes", _AT_MOST, 1.1, _p50("moved.all"), _p50("moved.off")),
    Bound("acting call of 300 ms that moves: calls/s at 16 over the same", _AT_LEAST, 0.9, _rate("moved.all", 16), _rate("moved.off", 16)),
    Bound("echo of 8 callers: p50 beside a call of 4 s over without it", _AT_MOST, 1.5, _p50("beside.slow", 8), _p50("beside.alone", 8)),
    Bound("first answer after `kill -9` of the service, from when it listens again", _AT_MOST, 1, _single("killed.first"), unit="s"),
    Bound(
        "tool with side effects, its own workflow: p50 over bare workflow + activity + HTTP",
        _AT_MOST,
        1.4,
        _p50("ours.acting"),
        _p50("bare.http"),
    ),
    Bound(
        "tool with side effects, its own workflow: calls/s at 16 over the same",
        _AT_LEAST,
        0.75,
        _rate("ours.acting", 16),
        _rate("bare.http", 16),
    ),
    Bound(
        "tool with side effects, its own workflow: calls/s at 64 over the same",
        _AT_LEAST,
        0.6,
        _rate("ours.acting", 64),
        _rate("bare.http", 64),
    ),
    Bound("calculator in a session of a group: p50 over bare update", _AT_MOST, 1.4, _p50("ours.session"), _p50("bare.own")),
    Bound("64 sessions: calls/s at 64 over as many bare workflows", _AT_LEAST, 0.6, _rate("ours.session", 64), _rate("bare.own", 64)),
    Bound("message of a chat, answered by rules: p50 over bare update-with-start", _AT_MOST, 2.5, _p50("ours.chat"), _p50("bare.own")),
    Bound(
        "message of a chat, answered by a model: p50 over bare update-with-start and activity, both without the model's time",
        _AT_MOST,
        1.8,
        _without(_p50("model.chat"), _p50("model.alone")),
        _without(_p50("bare.asked"), _p50("model.alone")),
    ),
    Bound("the same, both with the model's time", "", None, _p50("model.chat"), _p50("bare.asked")),
    Bound("the same: calls/s at 16", _AT_LEAST, 0.5, _rate("model.chat", 16), _rate("bare.asked", 16)),
    Bound("many chats at 64 callers: turns lost, repeated or out of order", _AT_MOST, 0, _single("chats.faults"), unit=""),
    Bound("a long chat: events of its longest run", _AT_MOST, 10_000, _single("chats.long.events"), unit=""),
    Bound("a long chat: its largest run", _AT_MOST, 5, _single("chats.long.bytes"), unit="MB"),
    Bound("echo: p50 with many tools and records over few and none", _AT_MOST, 1.1, _p50("scale.many"), _p50("scale.few")),
    Bound(
        "echo: calls/s at 64 with many tools and records over few and none", _AT_LEAST, 0.9, _rate("scale.many", 64), _rate("scale.few", 64)
    ),
    Bound("resident after all calls over after a tenth of them", _AT_MOST, 1.1, _single("memory.full"), _single("memory.some")),
    Bound("echo: calls/s at 64 of two doors on PostgreSQL over one", "", None, _rate("doors.two", 64), _rate("doors.one", 64)),
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
    Bound(
        "rounds every 5 s over 50 running tools: the worker's CPU a minute more than without",
        _AT_MOST,
        2,
        _single("keeping.rounds"),
        over=_single("keeping.none"),
        unit="s",
    ),
    Bound("search by words: p50 over the library bare", _AT_MOST, 3, _single("search.p50.words"), _single("search.p50.bare")),
    Bound("search by words and meanings: the same", _AT_MOST, 3, _single("search.p50.both"), _single("search.p50.bare")),
    Bound("index of words: built over the library's bare", _AT_MOST, 2, _single("search.build.words"), _single("search.build.bare")),
    Bound("index of words and meanings: the same", _AT_MOST, 2, _single("search.build.both"), _single("search.build.bare")),
    Bound("labelled queries: recall@5 by words and meanings", _AT_LEAST, 90, _single("search.recall.both"), unit="%"),
    Bound("the same by words alone", "", None, _single("search.recall.words"), unit="%"),
    Bound("exact ids and names that come first", _AT_LEAST, 100, _single("search.named.both"), unit="%"),
    *(bound for name, revision in (("session", "2025-11-25"), ("single", "2026-07-28")) for bound in _bounds_of_mcp(name, revision)),
    Bound(
        "tool of an MCP server over HTTP: p50 over the same as a remote tool",
        _AT_MOST,
        1.3,
        _p50("ours.upstream_by_mcp"),
        _p50("ours.upstream_by_http"),
    ),
    Bound("page of tools by MCP: p50 with many tools over few", _AT_MOST, 1.5, _p50("page.many"), _p50("page.few")),
    Bound(
        "resident after all sessions of MCP clients over after a fifth",
        _AT_MOST,
        1.2,
        _single("mcp.sessions.all"),
        _single("mcp.sessions.some"),
    ),
    Bound("resident when idle, everything", _AT_MOST, 500, _single("memory.idle"), unit="MiB"),
)


def judge(results: Results) -> list[Verdict]:
    """Each bound with what it came to; None where this run has not measured it."""
    return [_verdict(bound, results) for bound in _BOUNDS]


def _verdict(bound: Bound, results: Results) -> Verdict:
    of, to = bound.of(results), bound.to(results) if bound.to else 1.0
    over = bound.over(results) if bound.over else 0.0
    ratio = None if of is None or over is None or not to else (of - over) / to
    met = None
    if ratio is not None and bound.bound is not None:
        met = ratio <= bound.bound if bound.sign == _AT_MOST else ratio >= bound.bound
    return Verdict(label=bound.label, sign=bound.sign, bound=bound.bound, unit=bound.unit, ratio=ratio, met=met)
