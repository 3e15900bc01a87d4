"""Lists a server's tools within bounds, and reports faulty ones as data."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from mcp import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header
from pydantic import JsonValue

from engine.runtimes.mcp.answers import message_of
from engine.runtimes.mcp.session import Session
from engine.runtimes.secrecy import masked
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.sources import McpHints, Revision
from toolagent.core.texts import well_formed, well_formed_value
from toolagent.validation.schemas import schema_faults

_MOST_TOOLS = 1000
_MOST_PAGES = 100
_MOST_BYTES = 8 * 1024 * 1024
_LONGEST_NAME = 256
_LONGEST_CURSOR = 4096
_SHOWN = 80
_HINTS = {"read_only": "readOnlyHint", "destructive": "destructiveHint", "idempotent": "idempotentHint", "open_world": "openWorldHint"}


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as the server describes it. The server's hints about itself count only if the server is trusted."""

    name: str
    description: str
    input_schema: JsonSchema
    output_schema: JsonSchema | None = None
    hints: McpHints = field(default_factory=McpHints)


@dataclass(frozen=True, slots=True)
class ListingFault:
    """A tool that was left out, and why. `name` is empty if the listing itself ended early."""

    name: str
    reason: str


@dataclass(slots=True)
class Listing:
    """The tools in the server's order; of several with one name, the first."""

    revision: Revision | None = None
    """The protocol revision that the server speaks, which later connections try first; None if it need not be remembered."""
    tools: list[ListedTool] = field(default_factory=list[ListedTool])
    faults: list[ListingFault] = field(default_factory=list[ListingFault])

    def leave_out(self, name: str, reason: str) -> None:
        self.faults.append(ListingFault(well_formed(name), reason))


async def listing_of(session: Session, secrets: Sequence[str] = ()) -> Listing:
    """Reads all pages, up to the bounds, and masks `secrets`. Raises MCPError if the first page fails."""
    found = Listing()
    cursor: str | None = None
    seen: set[str] = set()
    size = 0
    for _ in range(_MOST_PAGES):
        try:
            told = await session.list_page(cursor)
        except MCPError as error:
            if cursor is None:
                raise
            found.leave_out("", f"The next page could not be read: {message_of(error, secrets)}")
            return found
        page, length = await asyncio.to_thread(_shown, told, secrets)
        size += length
        if size > _MOST_BYTES:
            found.leave_out("", f"The server lists more than {_MOST_BYTES} bytes; what came after is left out.")
            return found
        if not await _taken(page.get("tools"), found):
            return found
        # The unmasked cursor: it is sent back to the server, and shown to no caller.
        following = told.get("nextCursor")
        if following is None:
            return found
        if not isinstance(following, str) or len(following) > _LONGEST_CURSOR or following in seen:
            found.leave_out("", "The server repeats a next page, or names an invalid one; the listing ends there.")
            return found
        seen.add(cursor := following)
    found.leave_out("", f"The server has more than {_MOST_PAGES} pages of tools; the others are left out.")
    return found


def _shown(page: dict[str, JsonValue], secrets: Sequence[str]) -> tuple[dict[str, JsonValue], int]:
    """The page with its secrets masked, and its size. Blocks."""
    return cast("dict[str, JsonValue]", masked(page, secrets)), len(json.dumps(page))


async def _taken(tools: JsonValue, found: Listing) -> bool:
    """Adds the tools of a page. Returns whether there is room for more."""
    if not isinstance(tools, list):
        found.leave_out("", "`tools` of the server's answer is not a list.")
        return False
    names = {tool.name for tool in found.tools}
    for told in tools:
        if len(found.tools) + len(found.faults) >= _MOST_TOOLS:
            found.leave_out("", f"The server lists more than {_MOST_TOOLS} tools; the others are left out.")
            return False
        tool = await asyncio.to_thread(_tool, told, found)
        if tool is None:
            continue
        if tool.name in names:
            found.leave_out(tool.name, "The server lists it twice; the first counts.")
            continue
        names.add(tool.name)
        found.tools.append(tool)
    return True


def _tool(told: JsonValue, found: Listing) -> ListedTool | None:
    name = told.get("name") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(name, str) or not name or len(name) > _LONGEST_NAME or name != well_formed(name):
        found.leave_out(json.dumps(name)[:_SHOWN], f"Its name is not a text of 1 to {_LONGEST_NAME} characters.")
        return None
    schemas: list[JsonSchema | None] = []
    for key, is_needed in (("inputSchema", True), ("outputSchema", False)):
        schema, reason = _schema(told.get(key), is_needed=is_needed)
        if reason:
            found.leave_out(name, f"Its {key} {reason}")
            return None
        schemas.append(schema)
    if (reason := find_invalid_x_mcp_header(schemas[0])) is not None:
        found.leave_out(name, f"Its inputSchema has a header that cannot be sent: {reason}")
        return None
    description = told.get("description")
    return ListedTool(name, well_formed(description) if isinstance(description, str) else "", schemas[0] or {}, schemas[1], _hints(told))


def _hints(told: dict[str, JsonValue]) -> McpHints:
    annotations = told.get("annotations")
    said = annotations if isinstance(annotations, dict) else {}
    titles = (one for one in (told.get("title"), said.get("title")) if isinstance(one, str) and one.strip())
    flags = {ours: value for ours, theirs in _HINTS.items() if isinstance(value := said.get(theirs), bool)}
    return McpHints(title=well_formed(next(titles, ""))[:_LONGEST_NAME] or None, **flags)


def _schema(told: JsonValue, *, is_needed: bool) -> tuple[JsonSchema | None, str]:
    """The schema, and why it is refused, else empty."""
    if told is None and not is_needed:
        return None, ""
    if not isinstance(told, dict):
        return None, "is no JSON Schema: an object is expected."
    schema = cast("JsonSchema", well_formed_value(told))
    faults = schema_faults(schema)
    return (None, f"is refused: {faults[0].path}: {faults[0].message}") if faults else (schema, "")
