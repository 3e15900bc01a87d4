"""The command that shows how often a tool was used."""

from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.options import Tool, tool_id_of
from toolagent.cli.render import cell, moment, show_rows
from toolagent.contracts.usage import ToolUsage

__all__ = ["usage"]


@asking
def usage(
    asked: Asked,
    tool: Tool,
    hours: Annotated[float | None, typer.Option(min=0.01, max=87_600, help="Only calls within so many hours; default: all.")] = None,
) -> None:
    """Show how often a tool was called, how long it took, and how often it failed.

    `toolagent usage image_stitcher --hours 24`
    """
    asked.show(asked.service.usage(tool_id_of(tool), hours), _show)


def _show(usage: ToolUsage) -> None:
    errors = ", ".join(f"{kind} {count}" for kind, count in usage.errors.items())
    rate = "—" if usage.error_rate is None else f"{usage.error_rate:.1%}"
    row = (cell(usage.tool_id, "bold"), f"{usage.calls:,}", rate, errors, _seconds(usage.average_s), _seconds(usage.p95_s))
    show_rows(("tool", "calls", "failed", "errors", "average", "p95", "last used"), ((*row, moment(usage.last_used)),))


def _seconds(value: float | None) -> str:
    return "—" if value is None else f"{value:.3g} s"
