"""The login at a server, as connections use it."""

from typing import Protocol

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth

from engine.runtimes.failures import NotSent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import McpSource

LOGIN_REQUIRED = "login_required"
"""`reason` in the details of a call that was not sent because its server wants a login."""

_UNAUTHORIZED, _FORBIDDEN = 401, 403


class Login(Protocol):
    """The login at one server, for one connection."""

    @property
    def shown(self) -> list[str]:
        """The secrets that the server was shown. The list grows as tokens are renewed."""
        ...

    async def token(self) -> str | None:
        """The token to send; None while there is none. Raises NotSent."""
        ...

    async def renewed(self, used: str | None, refusal: httpx2.Response, *, is_again: bool = False) -> str:
        """A new token in place of the refused one. `is_again`: an earlier new token was refused for the same request too.

        Raises NotSent, with the reason `login_required` if a person must log in.
        """
        ...

    async def refused(self) -> NotSent:
        """The failure of a request whose tokens were all refused, also new ones: a person must log in."""
        ...


class Logins(Protocol):
    """The logins at registered servers."""

    def of(self, source: McpSource) -> Login: ...


def is_refusal(response: httpx2.Response) -> bool:
    """Whether a server wants a token, another token, or one with more scopes."""
    if response.status_code == _FORBIDDEN:
        return extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == _UNAUTHORIZED


def login_required(message: str) -> NotSent:
    """The message names the remedy."""
    return NotSent(ErrorType.DEPENDENCY_ERROR, message, {"reason": LOGIN_REQUIRED, "missing": "login"})
