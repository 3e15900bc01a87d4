"""Resources: files and tools of the service."""

import base64
import re
from contextlib import suppress

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

from api.mcp.calls.answers import FILE_URI, Answers
from api.mcp.catalog import ToolCatalog
from api.mcp.changes import TOOL_URI
from api.mcp.clients import answering, asked_again, is_modern
from api.mcp.offers.passing import Passing, as_revision
from api.mcp.sessions.kept import ClientSessions
from api.mcp.visit import Ctx, visit_of
from api.ports import Files
from toolagent.contracts.identifiers import FILE_ID_PATTERN

OWN = "toolagent://"

_NOT_FOUND = -32_002
"""Of the older revision; the newer has it among the invalid params."""

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
    def __init__(self, catalog: ToolCatalog, files: Files, answers: Answers, sessions: ClientSessions, passing: Passing) -> None:
        self._catalog, self._files, self._answers = catalog, files, answers
        self._sessions, self._passing = sessions, passing

    async def list(self, ctx: Ctx, params: PaginatedRequestParams | None) -> dict[str, JsonValue]:
        """The tools, and then what registered servers list. Files are not listed: who made one has its link.

        Raises MCPError for a cursor that is none of ours.
        """
        tools, following = await self._catalog.page(visit_of(ctx).selection, params.cursor if params else None)
        found: list[JsonValue] = []
        for tool in tools:
            meta = tool.get("_meta")
            tool_id = meta.get("toolagent/tool_id") if isinstance(meta, dict) else None
            shown = {"name": tool["name"], "title": tool["title"], "description": tool["description"], "mimeType": "application/json"}
            found.append({"uri": f"{TOOL_URI}{tool_id}", **shown})
        if following is None and visit_of(ctx).selection.is_all:
            found += [item for _, item in (await self._passing.resources()).values()]
        listed: dict[str, JsonValue] = {"resources": found}
        return {**listed, "nextCursor": following} if following is not None else listed

    async def templates(self, ctx: Ctx, _params: PaginatedRequestParams | None) -> dict[str, JsonValue]:
        others = (await self._passing.templates()).values() if visit_of(ctx).selection.is_all else ()
        return {"resourceTemplates": [*TEMPLATES, *(item for _, item in others)]}

    async def read(self, ctx: Ctx, params: ReadResourceRequestParams) -> dict[str, JsonValue]:
        """Raises MCPError for what is not there, or is too large."""
        uri = str(params.uri)
        content = await self._tool(uri) if uri.startswith(TOOL_URI) else await self._file(uri) if uri.startswith(FILE_URI) else None
        place = await self._passing.place_of(uri) if content is None and not uri.startswith(OWN) else None
        if place is not None:
            try:
                return await self._passing.ask(place, "resources/read", asked_again({"uri": uri}, params), answering(ctx))
            except MCPError as error:
                raise as_revision(error, modern=is_modern(ctx)) from error
        if content is None:
            code = INVALID_PARAMS if is_modern(ctx) else _NOT_FOUND
            raise MCPError(code, f"uri: there is no resource {uri[:200]!r}.", {"uri": uri[:200]})
        return {"contents": [{"uri": uri, **content}]}

    async def subscribe(self, ctx: Ctx, params: SubscribeRequestParams) -> EmptyResult:
        session, uri = visit_of(ctx).session, str(params.uri)
        if session is not None and uri not in session.subscriptions:
            if len(session.subscriptions) >= _MOST_SUBSCRIPTIONS or len(uri) > 2048:
                raise MCPError(INVALID_PARAMS, f"uri: a session has at most {_MOST_SUBSCRIPTIONS} subscriptions. Unsubscribe from others.")
            await self._sessions.change(session.model_copy(update={"subscriptions": (*session.subscriptions, uri)}))
            await self.hear_of(uri)
        return EmptyResult()

    async def hear_of(self, uri: str) -> None:
        """Have the server whose resource it is tell of changes, as far as it does."""
        if not uri.startswith(OWN) and (place := await self._passing.place_of(uri)) is not None:
            with suppress(MCPError):
                await self._passing.ask(place, "resources/subscribe", {"uri": uri})

    async def unsubscribe(self, ctx: Ctx, params: UnsubscribeRequestParams) -> EmptyResult:
        session, uri = visit_of(ctx).session, str(params.uri)
        if session is not None and uri in session.subscriptions:
            left = tuple(one for one in session.subscriptions if one != uri)
            await self._sessions.change(session.model_copy(update={"subscriptions": left}))
        return EmptyResult()

    async def _tool(self, uri: str) -> dict[str, JsonValue] | None:
        entry = await self._catalog.find(uri.removeprefix(TOOL_URI))
        if entry is None or entry.manifest.tool_id != uri.removeprefix(TOOL_URI):
            return None
        return {"mimeType": "application/json", "text": entry.manifest.model_dump_json()}

    async def _file(self, uri: str) -> dict[str, JsonValue] | None:
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
