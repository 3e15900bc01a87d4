"""Seals the state that clients keep for the service (`requestState`, ids of events and questions), so that they cannot forge it."""

import json
import time
from typing import Any

from mcp import MCPError
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState
from mcp_types import INVALID_PARAMS
from pydantic import JsonValue

_KEPT_S = 86_400.0
"""Longer than any call takes."""


class RequestStates:
    """`key` is a secret of at least 32 bytes, shared by all front doors."""

    def __init__(self, key: str | bytes) -> None:
        self._codec = AESGCMRequestStateCodec([key])

    def sealed(self, call_id: str, tool_id: str, position: int) -> str:
        """`position` is that of the last message told."""
        return self._codec.seal(json.dumps([call_id, tool_id, time.time(), position]).encode())

    def opened(self, state: str, tool_id: str) -> tuple[str, int]:
        """The call id, and the position of the last message told.

        Raises MCPError if this service has not sealed the state, or for another tool, or too long ago.
        """
        try:
            call_id, of_tool, at, position = json.loads(self._codec.unseal(state))
        except (InvalidRequestState, ValueError) as error:
            raise _refused() from error
        if of_tool != tool_id or time.time() - float(at) > _KEPT_S:
            raise _refused()
        return str(call_id), int(position)

    def sealed_as(self, kind: str, *parts: JsonValue) -> str:
        """The sealed parts, in characters that HTTP headers allow."""
        return self._codec.seal(json.dumps([kind, parts]).encode())

    def opened_as(self, kind: str, text: str) -> list[Any] | None:
        """The parts; None if this service has not sealed them as this kind."""
        try:
            of_kind, parts = json.loads(self._codec.unseal(text))
        except (InvalidRequestState, ValueError):
            return None
        return parts if of_kind == kind else None


def _refused() -> MCPError:
    message = "requestState: it is invalid, expired, or of another tool. Send the request again without it."
    return MCPError(INVALID_PARAMS, message, {"reason": "invalid_request_state"})
