"""Adds metadata and headers to a request, by the agreed protocol revision."""

from collections.abc import Mapping

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY, PROTOCOL_VERSION_META_KEY, Implementation
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue

from toolagent.contracts.call_messages import Listener

OURS = Implementation(name="tool-agent", version="1")

IN_ANSWER_TO = "tool-agent/in-answer-to"
"""A key in `_meta` of messages that a server sends over HTTP during a call: the id of the call. Our side sets it."""


def is_modern(version: str) -> bool:
    """Whether each request stands alone, without a session (2026-07-28)."""
    return version in MODERN_PROTOCOL_VERSIONS


def stamped(
    method: str, params: Mapping[str, JsonValue], version: str, listens: Listener, more: Mapping[str, str]
) -> tuple[dict[str, JsonValue], dict[str, str]]:
    """Parameters and headers of a request, which declares the questions that this caller answers. `more` are its own headers."""
    headers = {MCP_PROTOCOL_VERSION_HEADER: version}
    if not is_modern(version):
        return dict(params), headers
    before = params.get("_meta")
    meta: dict[str, JsonValue] = {
        **(before if isinstance(before, dict) else {}),
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: OURS.model_dump(by_alias=True, mode="json", exclude_none=True),
        CLIENT_CAPABILITIES_META_KEY: {
            name: {mode: {} for mode in listens.elicits} if name == "elicitation" else {} for name in listens.answers
        },
    }
    if listens.log_level is not None:
        meta[LOG_LEVEL_META_KEY] = listens.log_level.value
    headers[MCP_METHOD_HEADER] = method
    name = params.get(NAME_BEARING_METHODS.get(method, ""))
    if isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    return {**params, "_meta": meta}, {**headers, **more}
