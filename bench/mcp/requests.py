"""Requests of MCP clients, as they go over HTTP."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

SESSIONS, SINGLE = "2025-11-25", "2026-07-28"
"""The revision with sessions, and the one whose requests stand by themselves."""

OLDER = "2025-06-18"
"""That of the peers, since before ours spoke MCP."""

NOT_AN_ERROR = '"isError":false'
"""In the answer of a call that succeeded."""

_META = "io.modelcontextprotocol"
TASKS = f"{_META}/tasks"
"""The extension of the newer revision."""

_ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True)
class McpRequest:
    """One that is made again and again. `prelude` is what each caller says before it."""

    body: str
    headers: Mapping[str, str]
    prelude: tuple[str, ...] = ()


def mcp_request(revision: str, method: str, client: str = "bench", extensions: Sequence[str] = (), **params: JsonValue) -> McpRequest:
    """In the form of this revision, by a client of this name that has these extensions."""
    if revision != SINGLE:
        return McpRequest(_rpc(method, params), {**_ACCEPT, "MCP-Protocol-Version": revision}, greeting(revision, client))
    about: dict[str, JsonValue] = {
        f"{_META}/protocolVersion": revision,
        f"{_META}/clientInfo": {"name": client, "version": "1"},
        f"{_META}/clientCapabilities": {"extensions": {extension: {} for extension in extensions}},
    }
    meta, name = params.get("_meta"), params.get("name") or params.get("taskId")
    headers = {"MCP-Protocol-Version": revision, "Mcp-Method": method, **({"Mcp-Name": name} if isinstance(name, str) else {})}
    return McpRequest(_rpc(method, {**params, "_meta": {**about, **(meta if isinstance(meta, dict) else {})}}), {**_ACCEPT, **headers})


def tool_call(revision: str, tool: str) -> McpRequest:
    return mcp_request(revision, "tools/call", name=tool, arguments={"message": "hello"})


def greeting(revision: str, client: str = "bench") -> tuple[str, str]:
    """What opens a session."""
    begin = _rpc("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": client, "version": "1"}})
    return begin, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})


def _rpc(method: str, params: Mapping[str, JsonValue]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
