"""Prints for a person: data on stdout, messages on stderr."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import typer
from pydantic import JsonValue
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from toolagent.cli.evidence import summary
from toolagent.cli.example import call_line
from toolagent.cli.permissions import granted
from toolagent.cli.words import result_told
from toolagent.contracts.audit import AuditEntry, AuditPage
from toolagent.contracts.batches import BatchResult
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.external_tables import ExternalTable
from toolagent.contracts.http import FoundTool, Health, ListedTool, ToolDetail
from toolagent.contracts.knowhub import KnowHubPlan
from toolagent.contracts.mcp_servers import McpServer
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.routes import ToolRoute
from toolagent.contracts.tasks import TaskView
from toolagent.contracts.versions import ToolVersions
from toolagent.core.parameter_schemas import property_names, property_schema, required_names, type_label

__all__ = [
    "Cell",
    "as_json",
    "cell",
    "describe_error",
    "moment",
    "show_audit",
    "show_batch",
    "show_contract",
    "show_failure",
    "show_faults",
    "show_json",
    "show_left_out",
    "show_lines",
    "show_note",
    "show_plain",
    "show_rows",
    "show_table",
    "show_task",
    "show_tool",
    "show_tools",
    "show_versions",
    "table_of",
    "table_of_health",
    "table_of_routes",
]

Cell = str | Text
_SHOWN = 120
_STATES = {"state", "status", "outcome"}
_COLOURS = {
    "success": "green",
    "running": "green",
    "ok": "green",
    "completed": "green",
    "starting": "yellow",
    "pending": "yellow",
    "error": "red",
    "failed": "red",
}


def as_json(contract: Contract) -> JsonValue:
    return contract.model_dump(mode="json")


def show_json(value: JsonValue) -> None:
    """Pretty JSON on stdout, escaped if the terminal's encoding lacks a character."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    if sys.stdout.isatty():
        Console().print_json(text)
    else:
        typer.echo(text)


def show_plain(line: str) -> None:
    """A line of data without markup and control characters."""
    typer.echo(cell(line).plain)


def show_contract(contract: Contract) -> None:
    show_json(as_json(contract))


def show_note(message: str, style: str = "") -> None:
    """A message on stderr, without line breaks of our own."""
    Console(stderr=True).print(cell(message, style), soft_wrap=True, highlight=False)


def show_failure(message: str) -> None:
    show_note(message, "red")


def show_faults(faults: tuple[CatalogFault, ...]) -> None:
    for fault in faults:
        show_note(f"warning: catalog {fault.file}: {fault.field}: {fault.reason}", "yellow")


def show_left_out(table: ExternalTable | McpServer | KnowHubPlan) -> None:
    for one in table.left_out:
        show_note(f"left out: {one.entry}: {one.reason}", "yellow")
    if more := table.left_out_total - len(table.left_out):
        show_note(f"left out: {more} more", "yellow")


def show_tools(tools: Sequence[ListedTool | FoundTool]) -> None:
    show_lines(
        ("id", "category", "backend", "state", "version", "description"),
        (
            (
                cell(tool.tool_id, "bold"),
                tool.category,
                tool.backend_runtime,
                tool.state.value,
                tool.version or "—",
                tool.description or tool.name,
            )
            for tool in tools
        ),
    )


def show_tool(tool: ToolDetail) -> None:
    console = _console()
    console.print(cell(tool.tool_id, "bold"), cell(f"· {tool.name} · {tool.version} · {tool.category} · {tool.backend_runtime.value}"))
    console.print(cell(tool.description or "(no description)"), soft_wrap=True)
    show_rows(("parameter", "type", "required", "default", "description"), _parameters(tool))
    reason = f" ({tool.route.last_error})" if tool.route.last_error else ""
    facts = (("output", _output(tool)), ("limits", _limits(tool)), *granted(tool), ("state", f"{tool.route.state.value}{reason}"))
    for line in (*(f"{name}: {what}" for name, what in facts), "example:", f"  {call_line(tool)}"):
        console.print(cell(line), soft_wrap=True)


def table_of_health(health: Health) -> Table:
    return table_of(("check", "state"), (("service", health.status), *health.checks.items()))


def table_of_routes(routes: tuple[ToolRoute, ...]) -> Table:
    return table_of(
        ("tool", "state", "pid", "port", "host", "since", "last error"),
        (
            (
                cell(route.tool_id, "bold"),
                route.state.value,
                str(route.pid or "—"),
                str(route.port or "—"),
                route.host or "—",
                moment(route.started_at),
                route.last_error or "",
            )
            for route in routes
        ),
    )


def show_task(task: TaskView) -> None:
    moments = (moment(task.started_at), moment(task.ended_at))
    row = (cell(task.task_id, "bold"), task.tool_id or "—", task.status.value, task.progress or "", *moments)
    show_rows(("task", "tool", "state", "progress", "started", "ended"), (row,))


def show_batch(batch: BatchResult) -> None:
    show_rows(("call", "tool", "state", "result"), map(_ended_call, batch.results))


def show_rows(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """A table of plain texts, with coloured states."""
    show_table(table_of(columns, rows))


def show_table(table: RenderableType) -> None:
    _console().print(table)


def table_of(columns: Sequence[str], rows: Iterable[Iterable[Cell]]) -> Table:
    """The table of `show_rows`."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(_coloured, columns, row))
    return table


def show_lines(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """`show_rows` with one line for each row. At a terminal, the last column is cut at the end of the line."""
    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold", expand=console.is_terminal)
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    table.add_column(columns[-1], no_wrap=True, overflow="ellipsis" if console.is_terminal else "ignore", ratio=1)
    for row in rows:
        *texts, last = row
        table.add_row(*map(_coloured, columns, texts), cell(" ".join(str(last).split())))
    console.print(table)


def show_versions(found: ToolVersions) -> None:
    show_rows(
        ("version", "status", "active", "since", "evidence"),
        (
            (
                cell(version.version, "bold"),
                version.status.value,
                "yes" if version.is_active else "",
                moment(version.created_at),
                summary(version.evidence),
            )
            for version in found.versions
        ),
    )


def show_audit(page: AuditPage) -> None:
    if page.entries:
        show_rows(("at", "tool", "action", "outcome", "seconds", "sandbox", "by", "remarks"), map(_run, page.entries))
    else:
        show_note("Such runs are not recorded.")
    if page.more:
        show_note("There are older ones: raise --limit, or narrow --tool and --since.")
    if page.unreadable:
        show_note(f"{page.unreadable} lines of the log could not be read.")


def describe_error(result: ToolResult) -> str:
    """Type and message of a failed call, then what is wrong with its values, one a line."""
    kind = result.error.type if result.error else result.error_type
    details = result.error.details if result.error else None
    if result.validation_errors:  # the rest is told already
        details = {"output": details["output"]} if isinstance(details, dict) and "output" in details else None
    more = f"\n  details: {json.dumps(details, ensure_ascii=False)}" if details else ""
    return f"{kind or 'error'}: {result_told(result)}{more}"


def cell(text: str, style: str = "") -> Text:
    """Text of the service, without markup and with escaped control characters."""
    return Text("".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text), style=style)


def moment(at: datetime | None) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else "—"


def _console() -> Console:
    # Piped output keeps each row on its line.
    return Console(highlight=False) if sys.stdout.isatty() else Console(width=500, highlight=False)


def _coloured(column: str, text: Cell) -> Text:
    return text if isinstance(text, Text) else cell(text, _COLOURS.get(text, "") if column in _STATES else "")


def _ended_call(result: ToolResult) -> Sequence[Cell]:
    text = json.dumps(result.result, ensure_ascii=False) if result.status == "success" else describe_error(result)
    return (cell(result.call_id, "bold"), result.tool_id, result.status, text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …")


def _run(entry: AuditEntry) -> Sequence[Cell]:
    remarks = [*filter(None, [entry.message]), *entry.refusals, *entry.advisories, *(f"{name} cut" for name in entry.truncated)]
    remarks += [f"installed {', '.join(entry.installs)}"] if entry.installs else []
    return (
        moment(entry.at),
        f"{entry.tool_id} {entry.version}",
        entry.action,
        entry.outcome,
        f"{entry.duration_s:.2f}",
        entry.sandbox.level.value if entry.sandbox else "",
        entry.caller.caller_id or "",
        "; ".join(remarks)[:_SHOWN],
    )


def _parameters(tool: ToolDetail) -> Iterator[Sequence[Cell]]:
    required = required_names(tool.input_schema)
    for name in property_names(tool.input_schema):
        schema = property_schema(tool.input_schema, name)
        default = json.dumps(schema["default"], ensure_ascii=False) if "default" in schema else ""
        description = schema.get("description")
        described = description if isinstance(description, str) else ""
        yield cell(name, "bold"), type_label(schema), "yes" if name in required else "", default, described


def _output(tool: ToolDetail) -> str:
    names = property_names(tool.output_schema)
    fields = (f"{name}: {type_label(property_schema(tool.output_schema, name))}" for name in names)
    return ", ".join(fields) if names else type_label(tool.output_schema)


def _limits(tool: ToolDetail) -> str:
    limits = [f"{tool.timeout_s:g} s a call", f"changes: {tool.side_effect_scope.value}"]
    if tool.concurrency:
        limits.append(f"{tool.concurrency} calls at once")
    if tool.cost_usd:
        limits.append(f"{tool.cost_usd:g} USD a call")
    if tool.scheduling_mode:
        limits.append(f"kept {tool.scheduling_mode.value}")
    if tool.requires_confirmation:
        limits.append("a person must confirm")
    return ", ".join(limits)
