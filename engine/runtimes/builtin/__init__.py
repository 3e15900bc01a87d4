"""Tools that are part of the engine: one file each, and one line here."""

from collections.abc import Mapping

from engine.runtimes.builtin import calculator, echo, execute_script, http_request
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy import execute, launch, listing, stop
from engine.runtimes.builtin.tool import BuiltinTool
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import BuiltinSource

__all__ = ["ALIASES", "builtin_tools", "entries"]

_TOOLS = (
    calculator.tool,
    echo.tool,
    execute_script.tool,
    http_request.tool,
    launch.tool,
    execute.tool,
    stop.tool,
    listing.tool,
)

ALIASES: Mapping[str, str] = {
    "runcomfy_launch_env": "launch_comfy_env",
    "runcomfy_run_only": "runcomfy_workflow_executor",
}
"""Other names that calls may use. They are not listed, and a tool with such an id takes precedence."""


def builtin_tools(options: BuiltinOptions) -> Mapping[str, BuiltinTool]:
    """All built-in tools by tool id. Raises ValueError for a bad option, or if two tools have one id."""
    tools = [make(options) for make in _TOOLS]
    by_id: dict[str, BuiltinTool] = {tool.manifest.tool_id: tool for tool in tools}
    if len(by_id) != len(tools):
        raise ValueError(f"Two built-in tools have one id: {sorted(tool.manifest.tool_id for tool in tools)}.")
    return by_id


def entries(tools: Mapping[str, BuiltinTool]) -> tuple[ToolEntry, ...]:
    """The tools' entries for the registry."""
    return tuple(ToolEntry(manifest=tool.manifest, sources=(BuiltinSource(handler=tool_id),)) for tool_id, tool in tools.items())
