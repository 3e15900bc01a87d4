"""What a connection to a server needs of the login there."""

from typing import Protocol

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth

from engine.runtimes.failures import NotSent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import McpSource

LOGIN_REQUIRED = "login_required"
"""`reason` in details of a call that was not sent, as its server wants a login."""

_UNAUTHORIZED, _FORBIDDEN = 401, 403


class Login(Protocol):
    """The login at one server, for one connection."""

    @property
    def shown(self) -> list[str]:
        """Secrets that the server was shown; it grows as tokens are renewed."""
        ...

    async def token(self) -> str | None:
        """What to send; None while there is none. Raises NotSent."""
        ...

    async def renewed(self, used: str | None, refusal: httpx2.Response, *, is_again: bool = False) -> str:
        """Another token than the one that was refused; `is_again`: for the same request, which one was got for before.

        Raises NotSent, with the reason `login_required` where a person has to log in.
        """
        ...

    async def refused(self) -> NotSent:
        """What a request fails with whose tokens were all refused, also new ones: a person has to log in."""
        ...


class Logins(Protocol):
    """Of registered servers."""

    def of(self, source: McpSource) -> Login: ...


def is_refusal(response: httpx2.Response) -> bool:
    """Whether a server wants a token, another one, or one for more."""
    if response.status_code == _FORBIDDEN:
        return extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == _UNAUTHORIZED


def login_required(message: str) -> NotSent:
    """The message names the remedy."""
    return NotSent(ErrorType.DEPENDENCY_ERROR, message, {"reason": LOGIN_REQUIRED, "missing": "login"})
