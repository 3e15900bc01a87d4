"""What there is under a tool's id, or the answer that names the nearest ones."""

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import JsonValue

from api.errors import Refusal
from api.ports import Dependencies
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.core.suggestions import nearest

_MAX_SHOWN = 128

FoundT = TypeVar("FoundT")


async def found_tool(dependencies: Dependencies, tool_id: str, look_up: Callable[[str], Awaitable[FoundT | None]]) -> FoundT:
    """What `look_up` finds under this id. Raises Refusal when that is nothing."""
    # What cannot be an id is not looked up: PostgreSQL fails on a NUL.
    found = await look_up(tool_id) if re.fullmatch(TOOL_ID_PATTERN, tool_id) else None
    if found is None:
        raise await unknown_tool(dependencies, tool_id)
    return found


async def unknown_tool(dependencies: Dependencies, tool_id: str) -> Refusal:
    """Names the nearest ones."""
    near = nearest(tool_id[:_MAX_SHOWN], await dependencies.registry.list_ids())
    hint = f"Did you mean {', '.join(near)}?" if near else "GET /tools lists what there is."
    details: JsonValue = {"nearest": list(near)}
    return Refusal(ErrorType.TOOL_NOT_FOUND, f"There is no tool {tool_id[:_MAX_SHOWN]!r}. {hint}", details=details)
