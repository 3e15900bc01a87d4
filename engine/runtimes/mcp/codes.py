"""Error codes that our side of a connection reports instead of an answer.

A code that the server itself sends counts the same.
"""

NOT_SENT = -31_001
"""Nothing reached the server."""

REFUSED = -31_002
"""Nothing was sent, because the address is not allowed."""

BROKEN = -31_003
"""The request was sent; its outcome is unknown."""

TOO_LARGE = -31_004
"""The answer is too large."""

FORGOTTEN = -31_005
"""The server does not know the session, and did nothing."""

DECLINED = -31_006
"""The server asked a question that the caller did not answer."""

STRANGE = -31_007
"""The server asks without end, or asks no valid question; or it answers with an HTTP error status without an MCP error."""

LOGIN = -31_008
"""The server wants a login, and did nothing; `data` has the reason."""
