"""`tools/list`: all tools in pages, or three tools that find and call the others."""

from typing import cast

from mcp import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, CallToolRequestParams, PaginatedRequestParams
from pydantic import JsonValue
from pydantic_core import to_json

from api.json_object import JsonObject
from api.mcp.calls.calling import Calling
from api.mcp.catalog import ToolCatalog
from api.mcp.visit import Ctx, Visit, visit_of
from api.ports import Search
from engine.registry.matching.texts import Filters
from toolagent.contracts.catalog import ToolEntry

_MOST = 20
_LONGEST_NEED = 500

FIND, DESCRIBE, CALL = "find_tools", "describe_tool", "call_tool"

_NAME: JsonObject = {"type": "string", "description": "Its name, as find_tools has it."}
_READS: JsonObject = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}

SEARCH_TOOLS: list[JsonValue] = [
    {
        "name": FIND,
        "title": "Find tools",
        "description": "Finds tools by what they are to do. Describe one with describe_tool before you call it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "need": {"type": "string", "maxLength": _LONGEST_NEED, "description": "What is to be done, in plain words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": _MOST, "description": "How many at most; unset: 5."},
            },
            "required": ["need"],
        },
        "annotations": _READS,
    },
    {
        "name": DESCRIBE,
        "title": "Describe a tool",
        "description": "What a tool takes and gives: its schemas, and the hints of its effects.",
        "inputSchema": {"type": "object", "properties": {"name": _NAME}, "required": ["name"]},
        "annotations": _READS,
    },
    {
        "name": CALL,
        "title": "Call a tool",
        "description": "Calls a tool with arguments that fit its inputSchema.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": _NAME, "arguments": {"type": "object", "description": "What inputSchema of the tool says."}},
            "required": ["name"],
        },
        "execution": {"taskSupport": "optional"},
    },
]


class Listing:
    def __init__(self, catalog: ToolCatalog, matching: Search, calling: Calling) -> None:
        self._catalog, self._matching, self._calling = catalog, matching, calling

    async def list(self, ctx: Ctx, params: PaginatedRequestParams | None) -> JsonObject:
        """The answer to `tools/list`. Raises MCPError for an invalid cursor."""
        selection = visit_of(ctx).selection
        if selection.search:
            return {"tools": SEARCH_TOOLS}
        tools, following = await self._catalog.page(selection, params.cursor if params else None)
        listed: JsonObject = {"tools": cast("JsonValue", tools)}
        return {**listed, "nextCursor": following} if following is not None else listed

    async def call(self, ctx: Ctx, params: CallToolRequestParams) -> JsonObject:
        """The answer to `tools/call`. Raises MCPError."""
        visit = visit_of(ctx)
        if not visit.selection.search:
            return await self._calling.call(ctx, params)
        given = cast("JsonObject", params.arguments or {})
        match params.name:
            case "find_tools":
                return await self._found(visit, given)
            case "describe_tool":
                return _answer(self._catalog.listed(await self._named(visit, given)))
            case _:
                return await self._calling.make(ctx, *await self._called(visit, params))

    async def begin_task(self, ctx: Ctx, params: CallToolRequestParams) -> JsonObject:
        """The answer to `tools/call` with `task`, of revision 2025-11-25. Raises MCPError."""
        visit = visit_of(ctx)
        if not visit.selection.search:
            return await self._calling.begin_task(ctx, await self._calling.entry(visit, params.name), params)
        if params.name in {FIND, DESCRIBE}:
            raise MCPError(METHOD_NOT_FOUND, f"task: {params.name} cannot be a task. Call it without `task`.")
        return await self._calling.begin_task(ctx, *await self._called(visit, params))

    async def _called(self, visit: Visit, params: CallToolRequestParams) -> tuple[ToolEntry, CallToolRequestParams]:
        """The tool that `call_tool` names, and the request for that tool. Raises MCPError."""
        if params.name != CALL:
            told = f"name: there is no tool {params.name[:128]!r}; with mode=search there are {FIND}, {DESCRIBE}, {CALL}."
            raise MCPError(INVALID_PARAMS, told)
        given = cast("JsonObject", params.arguments or {})
        entry, arguments = await self._named(visit, given), given.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            raise MCPError(INVALID_PARAMS, "arguments.arguments: an object is expected.")
        return entry, params.model_copy(update={"name": given.get("name"), "arguments": arguments})

    async def _found(self, visit: Visit, given: JsonObject) -> JsonObject:
        need, limit, chosen = given.get("need"), given.get("limit", 5), visit.selection
        if not isinstance(need, str) or not need.strip():
            raise MCPError(INVALID_PARAMS, "arguments.need: a text is expected.")
        if len(need) > _LONGEST_NEED:
            raise MCPError(INVALID_PARAMS, f"arguments.need: it has {len(need)} characters; at most {_LONGEST_NEED} are taken.")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST:
            raise MCPError(INVALID_PARAMS, f"arguments.limit: a number from 1 to {_MOST} is expected.")
        filters = Filters(None, None, chosen.tag, chosen.group, chosen.namespace)
        entries, total = await self._matching.search(need, filters, limit)
        known = (await self._catalog.now()).entries
        tools: list[JsonValue] = [
            {key: value for key, value in self._catalog.listed(entry).items() if key in {"name", "title", "description"}}
            for entry in entries
            if entry.manifest.tool_id in known
        ]
        return _answer({"tools": tools, "total": total})

    async def _named(self, visit: Visit, given: JsonObject) -> ToolEntry:
        name = given.get("name")
        if not isinstance(name, str):
            raise MCPError(INVALID_PARAMS, f"arguments.name: the name of a tool is expected. {FIND} has the names.")
        entry = await self._catalog.find(name)
        if entry is None or not await self._catalog.is_selected(visit.selection, entry):
            raise MCPError(INVALID_PARAMS, f"arguments.name: there is no tool {name[:128]!r}. {FIND} has the names.")
        return entry


def _answer(value: JsonObject) -> JsonObject:
    return {"content": [{"type": "text", "text": to_json(value).decode()}], "structuredContent": value, "isError": False}
