"""Who may knock: the bearer key, and without one only this machine's own programs; and that a request says one thing in one way."""

import secrets
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import Refusal, bad_field, refusal_response
from api.problems import ProblemKind

LOGIN_PATH = "/oauth/callback"
"""Where browsers come back to from a login at an MCP server. What they bring is checked by its `state`."""

_OPEN_PATHS = ("/health", LOGIN_PATH)
_POLICY_VIOLATION = 1008
_SAID_ONCE = ("Idempotency-Key", "X-Call-Id", "Authorization", "Content-Type", "Origin", "Range", "If-Range", "Last-Event-ID")
"""Headers that are read here, of which only one value can count: whoever reads the other one would take it for another request."""

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="tool-agent"'}


class Gate:
    """With a key, everything but `/health` and the return of logins needs it as bearer token, a websocket too.

    Without one the service listens on loopback only, and a browser is the one way in from outside: a page whose host name was
    made to point here (refused by `Host`), or one that posts to a foreign address (refused by `Origin`).
    """

    def __init__(self, app: ASGIApp, api_key: str | None, allowed_hosts: Collection[str]) -> None:
        self._app = app
        self._key = api_key.encode() if api_key is not None else None
        # None stands for what is no host: as a member it would let in `Origin: null`.
        self._hosts = {host for host in map(_host_of, allowed_hosts) if host is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Only the server itself opens the lifespan; everything else comes from outside.
        refusal = self._refusal(scope) if scope["type"] != "lifespan" else None
        if refusal is None and scope["type"] == "http":
            refusal = _conflict(Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await refusal_response(refusal)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refusal.detail})

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = Headers(scope=scope)
        if self._key is not None:
            is_open = scope["type"] == "http" and scope["path"] in _OPEN_PATHS
            return None if is_open else _refusal_without_key(headers, self._key)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _host_of(hosts[0]) not in self._hosts:
            known = ", ".join(sorted(self._hosts))
            return Refusal(ProblemKind.FOREIGN_HOST, f"Without an API key this service answers to the host names {known} only.")
        origin = headers.get("origin")
        if origin is not None and _host_of(origin.partition("://")[2]) not in self._hosts:
            return Refusal(ProblemKind.FOREIGN_ORIGIN, "Without an API key this service takes no requests from other sites' pages.")
        return None


def _refusal_without_key(headers: Headers, key: bytes) -> Refusal | None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secrets.compare_digest(given.strip(" ").encode("latin-1"), key):
        return None
    return Refusal(ProblemKind.UNAUTHORIZED, "This service wants its API key: `Authorization: Bearer <key>`.", headers=_CHALLENGE)


def _conflict(headers: Headers) -> Refusal | None:
    """400 when one of them stands there twice, with values that differ."""
    if len({name for name, _ in headers.raw}) == len(headers.raw):
        return None
    name = next((name for name in _SAID_ONCE if len(set(headers.getlist(name))) > 1), None)
    if name is None:
        return None
    return bad_field(name, "It stands there twice, with different values. Send one.", ProblemKind.CONFLICTING_HEADERS)


def _host_of(authority: str) -> str | None:
    """The host without its port, in lower case; None when it is not one."""
    try:
        return urlsplit(f"//{authority}").hostname if "@" not in authority else None
    except ValueError:
        return None
