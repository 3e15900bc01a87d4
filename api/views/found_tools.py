"""Look-ups by a tool's id, and the refusal of an unknown one with the nearest ids."""

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from api.errors import Refusal
from api.ports import Dependencies
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.core.suggestions import nearest

_MAX_SHOWN = 128

FoundT = TypeVar("FoundT")


async def found_tool(dependencies: Dependencies, tool_id: str, look_up: Callable[[str], Awaitable[FoundT | None]]) -> FoundT:
    """What `look_up` finds for this id. Raises Refusal if it finds nothing."""
    # Only ids are looked up: PostgreSQL fails on a NUL.
    found = await look_up(tool_id) if re.fullmatch(TOOL_ID_PATTERN, tool_id) else None
    if found is None:
        raise await unknown_tool(dependencies, tool_id)
    return found


async def unknown_tool(dependencies: Dependencies, tool_id: str) -> Refusal:
    """The refusal with the nearest ids."""
    near = nearest(tool_id[:_MAX_SHOWN], await dependencies.registry.list_ids())
    hint = f"Did you mean {', '.join(near)}?" if near else "GET /tools lists what there is."
    return Refusal(ErrorType.TOOL_NOT_FOUND, f"There is no tool {tool_id[:_MAX_SHOWN]!r}. {hint}", details={"nearest": [*near]})
