"""The results as tables: on the terminal and as Markdown, from the same cells."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.parts import SERVER
from bench.results import Profile, Results, Row, Verdict


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: titles of the columns, the first of them text, the others numbers."""

    title: str
    columns: Sequence[str]
    lines: Sequence[Sequence[str]]


def show(results: Results, console: Console) -> None:
    for about in (results.machine, results.run):
        for name, value in about.items():
            console.print(f"[dim]{name}:[/dim] {value}", highlight=False)
    for sheet in _sheets(results):
        table = Table(title=sheet.title, title_justify="left")
        for number, column in enumerate(sheet.columns):
            table.add_column(column, justify="right" if number else "left", overflow="fold")
        for line in sheet.lines:
            table.add_row(*line)
        console.print(table)
    for remark in results.remarks:
        console.print(remark, highlight=False)
    for failure in results.failures:
        console.print(f"NOT MEASURED {failure}", style="red", markup=False, highlight=False)


def write(results: Results, folder: Path, name: str) -> tuple[Path, Path]:
    """`<name>.json` with everything and `<name>.md` with the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    as_json, as_markdown = folder / f"{name}.json", folder / f"{name}.md"
    as_json.write_text(results.model_dump_json(indent=1) + "\n", "utf-8")
    as_markdown.write_text("\n".join(_markdown(results)) + "\n", "utf-8")
    return as_json, as_markdown


def _markdown(results: Results) -> Iterator[str]:
    yield "# Measured"
    yield ""
    for name, value in {**results.machine, **results.run}.items():
        yield f"- {name}: {value}"
    for sheet in _sheets(results):
        yield ""
        yield f"## {sheet.title}"
        yield ""
        yield f"| {' | '.join(sheet.columns)} |"
        yield "|" + "|".join("---" if not number else "---:" for number in range(len(sheet.columns))) + "|"
        for line in sheet.lines:
            yield f"| {' | '.join(line)} |"
    yield ""
    yield from results.remarks
    yield from (f"- NOT MEASURED {failure}" for failure in results.failures)


def _sheets(results: Results) -> Iterator[Sheet]:
    if results.rows:
        columns = ("way of calling", "callers", "p50 ms", "p99 ms", "calls/s", "in a lane", "CPU ms per call, by process")
        yield Sheet("Calls", columns, [_line(row) for row in results.rows])
    if results.singles:
        lines = [(one.label, f"{one.value:,.1f}" if one.unit else f"{one.value:,.0f}", one.unit) for one in results.singles]
        yield Sheet("Other figures", ("what", "value", "unit"), lines)
    if results.profiles:
        yield _profile(results.profiles)
    yield Sheet("What it must reach", ("bound", "asked", "measured", ""), [_judged(verdict) for verdict in results.verdicts])


def _profile(profiles: Sequence[Profile]) -> Sheet:
    columns = ["part", *(f"{one.way}, {one.callers}" for one in profiles)]
    parts = [[part, *(f"{one.ms[part]:.2f}" for one in profiles)] for part in profiles[0].ms]
    python = ["our Python in all", *(f"{sum(ms for part, ms in one.ms.items() if part != SERVER):.2f}" for one in profiles)]
    rates = ["calls/s, while looked at", *(f"{one.per_second:,.0f}" for one in profiles)]
    return Sheet("Where the time goes, CPU ms per call of echo, by lanes and callers", columns, [*parts, python, rates])


def _line(row: Row) -> tuple[str, ...]:
    cpu = ", ".join(f"{part} {value:.1f}" for part, value in row.cpu_ms.items())
    lane = "" if row.noted is None else f"{row.noted:.0%}"
    return (row.label, str(row.callers), f"{row.p50_ms:.2f}", f"{row.p99_ms:.2f}", f"{row.per_second:,.0f}", lane, cpu)


def _judged(verdict: Verdict) -> tuple[str, ...]:
    # To the thousandth: what misses its bound narrowly must not look as if it met it.
    measured = "not measured" if verdict.ratio is None else f"{verdict.ratio:,.3f} {verdict.unit}"
    said = {True: "met", False: "NOT MET", None: ""}[verdict.met]
    asked = "" if verdict.bound is None else f"{verdict.sign} {verdict.bound:g} {verdict.unit}"
    return (verdict.label, asked, measured, said)
