"""The tools as MCP clients see them, cached until the catalog changes."""

import asyncio
import base64
import binascii
import re
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mcp import MCPError
from mcp_types import INVALID_PARAMS, PaginatedRequestParams
from pydantic import JsonValue

from api.json_object import JsonObject
from api.ports import Groups, Registry
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.contracts.manifest import ToolStatus
from toolagent.core.catalog.namespaces import is_among
from toolagent.core.formats.mcp import as_mcp
from toolagent.core.formats.names import can_be_name, tool_id_of, vendor_names
from toolagent.core.formats.schemas import UnsuitableTool, object_schema

PAGE = 100

_FRESH_S = 1.0
"""How old the number of the catalog behind an answer may be."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools that a client's URL selects. `search`: the client sees three tools that find and call these instead."""

    tag: str | None = None
    namespace: str | None = None
    group: str | None = None
    search: bool = False

    @property
    def is_all(self) -> bool:
        return (self.tag, self.namespace, self.group) == (None, None, None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The active tools at one number of the catalog, by id. `names` has the ids of all tools by the names that clients use."""

    number: int
    entries: Mapping[str, ToolEntry] = field(default_factory=dict[str, ToolEntry])
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    called: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names by ids."""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    """The active version of each."""

    def named(self, name: str) -> ToolEntry | None:
        """A tool by its name, or by its id if no other tool has that name."""
        tool_id = tool_id_of(name, self.names)
        return self.entries.get(tool_id or name) if tool_id or not can_be_name(name) else None


class ToolCatalog:
    """`number` changes with the tools. All async methods raise StoreUnavailableError."""

    def __init__(self, registry: Registry, groups: Groups, number: Callable[[], Awaitable[int]]) -> None:
        self._registry, self._groups, self._number = registry, groups, number
        self._looked_at = float("-inf")
        self._snapshot = Snapshot(-1)
        self._turn = asyncio.Lock()

    async def now(self, max_age_s: float = _FRESH_S) -> Snapshot:
        """The tools as they were at most `max_age_s` ago. Concurrent callers share one look."""
        oldest = time.monotonic() - max_age_s
        if self._looked_at > oldest:
            return self._snapshot
        async with self._turn:
            if self._looked_at <= oldest:
                began_at = time.monotonic()
                if (number := await self._number()) != self._snapshot.number:
                    self._snapshot = await asyncio.to_thread(_snapshot_of, number, await self._registry.list_entries())
                self._looked_at = began_at
        return self._snapshot

    async def find(self, name: str) -> ToolEntry | None:
        """A tool by its name, its id or another name of it. An unknown one may be new: if it exists, all tools are loaded again."""
        if (entry := (await self.now()).named(name)) is not None:
            return entry
        for tool_id in dict.fromkeys((name, name.replace("__", ":"))):
            if re.fullmatch(TOOL_ID_PATTERN, tool_id) and (entry := await self._registry.called(tool_id)) is not None:
                found = entry.manifest.tool_id
                return (await self.now(0.0)).named(name if found == tool_id else found)
        return None

    def input_schema(self, name: str) -> Mapping[str, JsonValue] | None:
        """The schema of a tool's parameters in the cache; None for an unknown tool."""
        entry = self._snapshot.named(name)
        return object_schema(entry.manifest.input_schema) if entry else None

    async def page(self, selection: Selection, cursor: str | None) -> tuple[list[JsonObject], str | None]:
        """Tools in MCP's form, and the cursor of the next page. Raises MCPError for an invalid cursor."""
        snapshot = await self.now(0.0)
        ids = await self._selected(snapshot, selection)
        start = bisect_right(ids, _tool_before(cursor)) if cursor is not None else 0
        shown = ids[start : start + PAGE]
        tools = [as_mcp(snapshot.entries[tool_id].manifest, snapshot.called[tool_id]) for tool_id in shown]
        return tools, cursor_after(shown[-1]) if start + PAGE < len(ids) else None

    def listed(self, entry: ToolEntry) -> JsonObject:
        """One tool in MCP's form."""
        return as_mcp(entry.manifest, self._snapshot.called.get(entry.manifest.tool_id, entry.manifest.tool_id))

    async def is_selected(self, selection: Selection, entry: ToolEntry) -> bool:
        if not is_among(entry.manifest, selection.namespace, selection.tag):
            return False
        return selection.group is None or entry.manifest.tool_id in await self._members(selection.group)

    async def selected(self, selection: Selection) -> Sequence[str]:
        """The ids of the tools that a client sees."""
        return await self._selected(await self.now(), selection)

    async def _selected(self, snapshot: Snapshot, selection: Selection) -> Sequence[str]:
        ids = tuple(snapshot.entries)
        if selection.is_all:
            return ids
        members = await self._members(selection.group) if selection.group is not None else None
        tools = ((tool_id, snapshot.entries[tool_id].manifest) for tool_id in ids if members is None or tool_id in members)
        return [tool_id for tool_id, manifest in tools if is_among(manifest, selection.namespace, selection.tag)]

    async def _members(self, group_id: str) -> frozenset[str]:
        group = await self._groups.get(group_id)
        return group.all_tool_ids if group else frozenset()


def _snapshot_of(number: int, entries: Sequence[ToolEntry]) -> Snapshot:
    offered = {entry.manifest.tool_id: entry for entry in entries if _is_offered(entry)}
    # The names of all tools, as in `GET /tools?format=`: a deactivated tool keeps its name.
    names = vendor_names(entry.manifest.tool_id for entry in entries)
    called = {tool_id: name for name, tool_id in names.items()}
    versions = {tool_id: entry.manifest.version for tool_id, entry in offered.items()}
    return Snapshot(number, {tool_id: offered[tool_id] for tool_id in sorted(offered)}, names, called, versions)


def refuse_cursor(params: PaginatedRequestParams | None) -> None:
    """Raises MCPError for a cursor in a listing of one page."""
    if params is not None and params.cursor is not None:
        raise no_cursor()


def no_cursor() -> MCPError:
    """The error for a cursor that this server did not give."""
    return MCPError(INVALID_PARAMS, "cursor: it is none that this server gave. List again without one.")


def cursor_after(item: str) -> str:
    """The cursor of the items after this one."""
    return base64.urlsafe_b64encode(item.encode()).decode()


def item_before(cursor: str) -> str:
    """The item that `cursor_after` was given; empty for an invalid cursor."""
    try:
        return base64.b64decode(cursor.encode("ascii"), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _is_offered(entry: ToolEntry) -> bool:
    """Whether the tool can be called, with parameters that MCP can describe."""
    if entry.manifest.status is not ToolStatus.ACTIVE:
        return False
    try:
        object_schema(entry.manifest.input_schema)
    except UnsuitableTool:
        return False
    return True


def _tool_before(cursor: str) -> str:
    """Raises MCPError."""
    tool_id = item_before(cursor)
    if not re.fullmatch(TOOL_ID_PATTERN, tool_id):
        raise no_cursor()
    return tool_id
