"""Error codes that our own ends of a connection put in the place of an answer. A server that sends one of these is believed."""

NOT_SENT = -31_001
"""Nothing reached the server."""

REFUSED = -31_002
"""Nothing was sent, as nothing may be sent there."""

BROKEN = -31_003
"""It was sent, and what became of it is not known."""

TOO_LARGE = -31_004
"""It was answered, with more than is taken."""

FORGOTTEN = -31_005
"""The server knows nothing of the session, and did nothing."""

DECLINED = -31_006
"""It asked for something that its caller does not answer."""

LOGIN = -31_008
"""Nothing was done, as the server wants a login; `data` has the reason."""

STRANGE = -31_007
"""It asks without end, or what is no question; or it answers with an HTTP status that is an error, and says no more."""
