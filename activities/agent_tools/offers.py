"""What a role's model is offered, and what is wrong with what it asks for."""

import json
from collections.abc import Awaitable, Callable

from pydantic import JsonValue

from activities.agent_tools import AGENT_TOOLS
from activities.agent_tools.tool import AgentToolRefused, Role, Site, Used
from toolagent.contracts.model import ToolOffer, ToolUse
from toolagent.core.suggestions import nearest

__all__ = ["fault_in", "offers_of", "runner_of", "shown"]


def offers_of(role: Role) -> tuple[ToolOffer, ...]:
    """The same at each call, so that a model's cache of them holds."""
    return tuple(tool.offer for tool in AGENT_TOOLS.get(role, ()))


def fault_in(role: Role) -> Callable[[ToolUse], str]:
    """Why a use is not run, as the model is told; empty when it is. For `note_of`."""

    def fault(use: ToolUse) -> str:
        tools = _named(role)
        if use.name not in tools:
            near = nearest(use.name, [*tools], 1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            return f"There is no tool {use.name[:80]!r}.{meant} There are: {', '.join(tools)}."
        return tools[use.name](use.input)

    return fault


def runner_of(role: Role, name: str) -> Callable[[dict[str, JsonValue], Site], Awaitable[Used]]:
    """Raises AgentToolRefused when the role has no such tool."""
    for tool in AGENT_TOOLS.get(role, ()):
        if tool.name == name:
            return tool.run
    raise AgentToolRefused(fault_in(role)(ToolUse(id="", name=name)))


def shown(value: dict[str, JsonValue]) -> str:
    """Short values as JSON, one a line; texts of several lines as they are, under their names."""
    return "\n".join(_line(name, part) for name, part in value.items())


def _line(name: str, part: JsonValue) -> str:
    if isinstance(part, str):
        return f"{name}:\n{part}" if "\n" in part else f"{name}: {part}"
    return f"{name}: {json.dumps(part, ensure_ascii=False)}"


def _named(role: Role) -> dict[str, Callable[[dict[str, JsonValue]], str]]:
    return {tool.name: tool.fault for tool in AGENT_TOOLS.get(role, ())}
