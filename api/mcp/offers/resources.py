"""Resources: files and tools of the service, and resources of registered servers."""

import base64
import re
from bisect import bisect_right
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)
from pydantic import JsonValue

from api.json_object import JsonObject
from api.mcp.calls.answers import FILE_URI, Answers
from api.mcp.catalog import PAGE, Selection, ToolCatalog, cursor_after, item_before, refuse_cursor
from api.mcp.changes import TOOL_URI
from api.mcp.clients import answering, asked_again, is_modern
from api.mcp.kept_sessions import ClientSessions
from api.mcp.offers.passing import Passing, as_revision, require_short
from api.mcp.offers.watching import Watching
from api.mcp.visit import Ctx, visit_of
from api.ports import Files
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.identifiers import FILE_ID_PATTERN
from toolagent_service.contracts.mcp import McpSession

_OTHERS = " "
"""The first character of a cursor among resources of registered servers. No tool id contains it."""

_LARGEST = 4 * 1_048_576
_MOST_SUBSCRIPTIONS = 1000
_TEXTS = ("application/json", "application/xml", "application/yaml")

TEMPLATES: list[JsonValue] = [
    {
        "uriTemplate": f"{FILE_URI}{{file_id}}",
        "name": "file",
        "title": "A file",
        "description": "A file that a tool made, or that was uploaded.",
    },
    {
        "uriTemplate": f"{TOOL_URI}{{tool_id}}",
        "name": "tool",
        "title": "A tool",
        "description": "What a tool is: its whole manifest.",
        "mimeType": "application/json",
    },
]


class Resources:
    def __init__(
        self, catalog: ToolCatalog, files: Files, answers: Answers, sessions: ClientSessions, passing: Passing, watching: Watching
    ) -> None:
        self._catalog, self._files, self._answers = catalog, files, answers
        self._sessions, self._passing, self._watching = sessions, passing, watching

    async def list(self, ctx: Ctx, params: PaginatedRequestParams | None) -> JsonObject:
        """Tools, then resources of registered servers by URI, in pages. Files are not listed; results have links to them.

        Raises MCPError for an invalid cursor.
        """
        selection, cursor = visit_of(ctx).selection, params.cursor if params else None
        before = item_before(cursor or "")
        is_among_others = selection.is_all and before.startswith(_OTHERS)
        tools, following = ((), None) if is_among_others else await self._catalog.page(selection, cursor)
        found: list[JsonValue] = [_resource(tool) for tool in tools]
        if following is None and selection.is_all:
            others = await self._passing.resources()
            uris = sorted(others)
            start = bisect_right(uris, before.removeprefix(_OTHERS)) if is_among_others else 0
            shown = uris[start : start + PAGE - len(found)]
            found += [others[uri][1] for uri in shown]
            if start + len(shown) < len(uris):
                following = cursor_after(f"{_OTHERS}{shown[-1] if shown else ''}")
        listed: JsonObject = {"resources": found}
        return {**listed, "nextCursor": following} if following is not None else listed

    async def templates(self, ctx: Ctx, params: PaginatedRequestParams | None) -> JsonObject:
        refuse_cursor(params)
        others = (await self._passing.templates()).values() if visit_of(ctx).selection.is_all else ()
        return {"resourceTemplates": [*TEMPLATES, *(item for _, item in others)]}

    async def read(self, ctx: Ctx, params: ReadResourceRequestParams) -> JsonObject:
        """Raises MCPError for an unknown resource, and one that is too large."""
        uri, selection = str(params.uri), visit_of(ctx).selection
        require_short(uri)
        content: JsonObject | None = None
        if uri.startswith(TOOL_URI):
            content = await self._tool(uri, selection)
        elif uri.startswith(FILE_URI):
            content = await self._file(uri)
        place = await self._passing.place_of(uri) if content is None and selection.is_all else None
        if place is not None:
            try:
                return await self._passing.ask(place, "resources/read", asked_again({"uri": uri}, params), answering(ctx))
            except MCPError as error:
                raise as_revision(error, modern=is_modern(ctx)) from error
        if content is None:
            unknown = MCPError(INVALID_PARAMS, f"uri: there is no resource {uri[:200]!r}.", {"uri": uri[:200]})
            raise as_revision(unknown, modern=is_modern(ctx))
        return {"contents": [{"uri": uri, **content}]}

    async def subscribe(self, ctx: Ctx, params: SubscribeRequestParams) -> EmptyResult:
        session, uri = visit_of(ctx).session, str(params.uri)
        if session is not None and uri not in session.subscriptions:
            await self._require_shown(uri, visit_of(ctx).selection)
            await self._sessions.change(session.session_id, lambda now: _with(now, uri))
            await self._watching.watch(uri)
        return EmptyResult()

    @asynccontextmanager
    async def listening(self, ctx: Ctx, uris: Sequence[str]) -> AsyncGenerator[None]:
        """As `subscribe`, for a stream of the newer revision, until the block ends. Raises MCPError."""
        if len(uris) > _MOST_SUBSCRIPTIONS:
            raise MCPError(INVALID_PARAMS, f"resourceSubscriptions: there are {len(uris)}; at most {_MOST_SUBSCRIPTIONS} are taken.")
        for uri in uris:
            await self._require_shown(uri, visit_of(ctx).selection)
        async with self._watching.listening(uris):
            yield

    async def _require_shown(self, uri: str, selection: Selection) -> None:
        """Raises MCPError for a URI that is too long, or not selected by the URL of the server."""
        require_short(uri)
        if selection.is_all or uri.startswith(FILE_URI):
            return
        if not uri.startswith(TOOL_URI) or await self._shown(uri, selection) is None:
            raise MCPError(INVALID_PARAMS, f"uri: the URL of this server narrows what it has, and {uri[:200]!r} is not among it.")

    async def unsubscribe(self, ctx: Ctx, params: UnsubscribeRequestParams) -> EmptyResult:
        session, uri = visit_of(ctx).session, str(params.uri)
        if session is not None and uri in session.subscriptions:
            await self._sessions.change(session.session_id, lambda now: _without(now, uri))
            await self._watching.leave(uri)
        return EmptyResult()

    async def _tool(self, uri: str, selection: Selection) -> JsonObject | None:
        entry = await self._shown(uri, selection)
        return {"mimeType": "application/json", "text": entry.manifest.model_dump_json()} if entry is not None else None

    async def _shown(self, uri: str, selection: Selection) -> ToolEntry | None:
        """The tool of this URI, if the URL of the server selects it."""
        entry = await self._catalog.find(uri.removeprefix(TOOL_URI))
        if entry is None or entry.manifest.tool_id != uri.removeprefix(TOOL_URI):
            return None
        return entry if await self._catalog.is_selected(selection, entry) else None

    async def _file(self, uri: str) -> JsonObject | None:
        file_id = uri.removeprefix(FILE_URI)
        file = await self._files.get(file_id) if re.fullmatch(FILE_ID_PATTERN, file_id) else None
        if file is None:
            return None
        if file.size > _LARGEST:
            raise MCPError(
                INVALID_PARAMS, f"uri: the file has {file.size} bytes; at most {_LARGEST} are sent. GET /files/{file_id} has it."
            )
        data = await self._answers.bytes_of(file)
        if data is None:
            return None
        if file.media_type.startswith("text/") or file.media_type in _TEXTS:
            try:
                return {"mimeType": file.media_type, "text": data.decode()}
            except UnicodeDecodeError:
                pass
        return {"mimeType": file.media_type, "blob": base64.b64encode(data).decode()}


def _resource(tool: Mapping[str, JsonValue]) -> JsonValue:
    """A tool in MCP's form as a resource."""
    meta = tool.get("_meta")
    tool_id = meta.get("toolagent/tool_id") if isinstance(meta, dict) else None
    shown = {"name": tool["name"], "title": tool["title"], "description": tool["description"], "mimeType": "application/json"}
    return {"uri": f"{TOOL_URI}{tool_id}", **shown}


def _with(session: McpSession, uri: str) -> McpSession:
    """Raises MCPError if the session has the most subscriptions already."""
    if uri in session.subscriptions:
        return session
    if len(session.subscriptions) >= _MOST_SUBSCRIPTIONS:
        raise MCPError(INVALID_PARAMS, f"uri: a session has at most {_MOST_SUBSCRIPTIONS} subscriptions. Unsubscribe from others.")
    return session.model_copy(update={"subscriptions": (*session.subscriptions, uri)})


def _without(session: McpSession, uri: str) -> McpSession:
    return session.model_copy(update={"subscriptions": tuple(one for one in session.subscriptions if one != uri)})
