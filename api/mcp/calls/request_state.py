"""`requestState` of revision 2026-07-28: which call a client continues, sealed so that it cannot name another one."""

import json
import time

from mcp import MCPError
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState
from mcp_types import INVALID_PARAMS

_KEPT_S = 86_400.0
"""No call takes longer."""


class RequestStates:
    """`key` is a secret of 32 bytes or more, which all front doors share."""

    def __init__(self, key: str | bytes) -> None:
        self._codec = AESGCMRequestStateCodec([key])

    def sealed(self, call_id: str, tool_id: str) -> str:
        return self._codec.seal(json.dumps([call_id, tool_id, time.time()]).encode())

    def opened(self, state: str, tool_id: str) -> str:
        """The call id. Raises MCPError for what this service has not sealed, for another tool, or long ago."""
        try:
            call_id, of_tool, at = json.loads(self._codec.unseal(state))
        except (InvalidRequestState, ValueError) as error:
            raise _refused() from error
        if of_tool != tool_id or time.time() - float(at) > _KEPT_S:
            raise _refused()
        return str(call_id)


def _refused() -> MCPError:
    message = "requestState: it is invalid, expired, or of another tool. Send the request again without it."
    return MCPError(INVALID_PARAMS, message, {"reason": "invalid_request_state"})
