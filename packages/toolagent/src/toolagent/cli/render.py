"""What a person sees: data on stdout, messages on stderr."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

import typer
from pydantic import JsonValue
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolagent.cli.evidence import summary
from toolagent.cli.example import call_line
from toolagent.cli.permissions import granted
from toolagent.cli.schemas import property_names, property_schema, required_names, type_label
from toolagent.cli.words import result_told
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.batches import BatchResult
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.hosts import Host
from toolagent.contracts.http import FoundTool, Health, ListedTool, ToolDetail
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.routes import ToolRoute
from toolagent.contracts.tasks import TaskView
from toolagent.contracts.versions import ToolVersions

__all__ = [
    "as_json",
    "cell",
    "describe_error",
    "show_audit",
    "show_batch",
    "show_contract",
    "show_failure",
    "show_faults",
    "show_health",
    "show_hosts",
    "show_json",
    "show_lines",
    "show_note",
    "show_outcomes",
    "show_plain",
    "show_routes",
    "show_rows",
    "show_task",
    "show_tool",
    "show_tools",
    "show_versions",
]

_SHOWN = 120
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
    """Pretty JSON on stdout; escaped where the terminal's encoding lacks a character."""
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
    """A line of data, as it is: no markup, and nothing a terminal would obey."""
    typer.echo(cell(line).plain)


def show_contract(contract: Contract) -> None:
    show_json(as_json(contract))


def show_note(message: str, style: str = "") -> None:
    """A message on stderr, its lines never broken."""
    Console(stderr=True).print(cell(message, style), soft_wrap=True, highlight=False)


def show_failure(message: str) -> None:
    show_note(message, "red")


def show_faults(faults: tuple[CatalogFault, ...]) -> None:
    for fault in faults:
        show_note(f"warning: catalog {fault.file}: {fault.field}: {fault.reason}", "yellow")


def show_tools(tools: Sequence[ListedTool | FoundTool]) -> None:
    """One line a tool, at a terminal cut where it ends."""
    table, console = _lines("id", "category", "backend", "state", "version", "description")
    for tool in tools:
        table.add_row(
            cell(tool.tool_id, "bold"),
            *map(cell, (tool.category, tool.backend_runtime)),
            _state(tool.state.value),
            cell(tool.version or "—"),
            _one_line(tool.description or tool.name),
        )
    console.print(table)


def show_tool(tool: ToolDetail) -> None:
    console = _console()
    console.print(cell(tool.tool_id, "bold"), cell(f"· {tool.name} · {tool.version} · {tool.category} · {tool.backend_runtime.value}"))
    console.print(cell(tool.description or "(no description)"), soft_wrap=True)
    console.print(_parameters(tool))
    console.print(cell(f"output: {_output(tool)}"), soft_wrap=True)
    console.print(cell(f"limits: {_limits(tool)}"), soft_wrap=True)
    for name, what in granted(tool):
        console.print(cell(f"{name}: {what}"), soft_wrap=True)
    reason = f" ({tool.route.last_error})" if tool.route.last_error else ""
    console.print(cell(f"state: {tool.route.state.value}{reason}"), soft_wrap=True)
    console.print(cell("example:"))
    console.print(cell(f"  {call_line(tool)}"), soft_wrap=True)


def show_health(health: Health) -> None:
    table = _table("check", "state")
    table.add_row("service", _state(health.status))
    for name, state in health.checks.items():
        table.add_row(cell(name), _state(state))
    _console().print(table)


def show_routes(routes: tuple[ToolRoute, ...]) -> None:
    table = _table("tool", "state", "pid", "port", "host", "since", "last error")
    for route in routes:
        numbers = (str(number) if number else "—" for number in (route.pid, route.port))
        table.add_row(
            cell(route.tool_id, "bold"),
            _state(route.state.value),
            *numbers,
            cell(route.host or "—"),
            _moment(route.started_at),
            cell(route.last_error or ""),
        )
    _console().print(table)


def show_task(task: TaskView) -> None:
    table = _table("task", "tool", "state", "progress", "started", "ended")
    table.add_row(
        cell(task.task_id, "bold"),
        cell(task.tool_id or "—"),
        _state(task.status.value),
        cell(task.progress or ""),
        _moment(task.started_at),
        _moment(task.ended_at),
    )
    _console().print(table)


def show_batch(batch: BatchResult) -> None:
    table = _table("call", "tool", "state", "result")
    for result in batch.results:
        text = json.dumps(result.result, ensure_ascii=False) if result.status == "success" else describe_error(result)
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
        table.add_row(cell(result.call_id, "bold"), cell(result.tool_id), _state(result.status), cell(shown))
    _console().print(table)


def show_rows(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table of plain texts; states have their colours."""
    table = _table(*columns)
    for row in rows:
        table.add_row(*(_state(text) if column in {"state", "status"} else cell(text) for column, text in zip(columns, row, strict=True)))
    _console().print(table)


def show_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """`show_rows` with one line a row: at a terminal the last column is cut where the line ends."""
    table, console = _lines(*columns)
    for row in rows:
        texts = [_state(text) if column in {"state", "status"} else cell(text) for column, text in zip(columns[:-1], row, strict=False)]
        table.add_row(*texts, _one_line(row[-1]))
    console.print(table)


def show_outcomes(outcomes: Sequence[tuple[str, bool, float, str]]) -> None:
    """Of examples: what each is, whether it passed, its seconds, and why not."""
    table = _table("example", "state", "seconds", "reason")
    for description, passed, seconds, reason in outcomes:
        table.add_row(cell(description), _state("ok" if passed else "failed"), cell(f"{seconds:.2f}"), cell(reason))
    _console().print(table)


def show_versions(found: ToolVersions) -> None:
    table = _table("version", "status", "active", "since", "evidence")
    for version in found.versions:
        table.add_row(
            cell(version.version, "bold"),
            cell(version.status.value),
            "yes" if version.is_active else "",
            _moment(version.created_at),
            cell(summary(version.evidence)),
        )
    _console().print(table)


def show_hosts(hosts: tuple[Host, ...]) -> None:
    table = _table("host", "alive", "slots", "since", "seen")
    for host in hosts:
        slots = ", ".join(f"{bucket}: {count}" for bucket, count in host.buckets.items())
        state = _state("running") if host.is_alive else cell("gone", "red")
        table.add_row(cell(host.host, "bold"), state, cell(slots), _moment(host.started_at), _moment(host.seen_at))
    _console().print(table)


def show_audit(entries: tuple[AuditEntry, ...]) -> None:
    table = _table("at", "tool", "action", "outcome", "seconds", "sandbox", "by", "remarks")
    for entry in entries:
        remarks = [*filter(None, [entry.message]), *entry.refusals, *entry.advisories, *(f"{name} cut" for name in entry.truncated)]
        remarks += [f"installed {', '.join(entry.installs)}"] if entry.installs else []
        level = entry.sandbox.level.value if entry.sandbox else ""
        table.add_row(
            _moment(entry.at),
            cell(f"{entry.tool_id} {entry.version}"),
            cell(entry.action),
            _state(entry.outcome),
            cell(f"{entry.duration_s:.2f}"),
            cell(level),
            cell(entry.caller.caller_id or ""),
            cell("; ".join(remarks)[:_SHOWN]),
        )
    _console().print(table)


def describe_error(result: ToolResult) -> str:
    """Type and message of a failed call, then what is wrong with its values, one a line."""
    kind = result.error.type if result.error else result.error_type
    details = result.error.details if result.error else None
    more = f"\n  details: {json.dumps(details, ensure_ascii=False)}" if details and not result.validation_errors else ""
    return f"{kind or 'error'}: {result_told(result)}{more}"


def cell(text: str, style: str = "") -> Text:
    """Text of the service as it is: no markup, and nothing a terminal would obey."""
    return Text("".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text), style=style)


def _console() -> Console:
    # Piped output keeps each row on its line.
    return Console(highlight=False) if sys.stdout.isatty() else Console(width=500, highlight=False)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _lines(*columns: str) -> tuple[Table, Console]:
    """A table of which each row is one line, and where it is shown; at a terminal the last column takes what is left of the line."""
    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold", expand=console.is_terminal)
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    table.add_column(columns[-1], no_wrap=True, overflow="ellipsis" if console.is_terminal else "ignore", ratio=1)
    return table, console


def _one_line(text: str) -> Text:
    return cell(" ".join(text.split()))


def _state(state: str) -> Text:
    return cell(state, _COLOURS.get(state, ""))


def _moment(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else "—"


def _parameters(tool: ToolDetail) -> Table:
    table = _table("parameter", "type", "required", "default", "description")
    required = required_names(tool.input_schema)
    for name in property_names(tool.input_schema):
        schema = property_schema(tool.input_schema, name)
        default = json.dumps(schema["default"], ensure_ascii=False) if "default" in schema else ""
        description = schema.get("description")
        table.add_row(
            cell(name, "bold"),
            cell(type_label(schema)),
            "yes" if name in required else "",
            cell(default),
            cell(description if isinstance(description, str) else ""),
        )
    return table


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
    if tool.requires_confirmation:
        limits.append("a person must confirm")
    return ", ".join(limits)
