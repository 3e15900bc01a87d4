"""Refuses requests before routing: without the API key, from foreign pages, with contradictory headers, with large bodies."""

import asyncio
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import Refusal, bad_field, refusal_response
from api.problems import ProblemKind

LOGIN_PATH = "/oauth/callback"
"""Where browsers return to after a login at an MCP server. The `state` in the request is checked there."""

_OPEN_PATHS = ("/health", LOGIN_PATH)
_POLICY_VIOLATION = 1008
_SAID_ONCE = ("Idempotency-Key", "X-Call-Id", "Authorization", "Content-Type", "Origin", "Range", "If-Range", "Last-Event-ID")
"""Headers that may have one value only: another reader of the request might take the other one."""

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="tool-agent"'}

BODY_SLACK = 65_536
"""Bytes that a body may have besides its main part, for the other fields of a call or the headers of a form's parts."""

MAX_BATCH_BYTES = 1_310_720
"""Bytes of a whole batch. It is one input of a workflow, and Temporal takes no payload above 2 MiB."""

DRAINED = 8 * 1_048_576
"""Bytes beyond twice the limit that are read and dropped, so that the client gets to read the refusal."""

_DRAIN_TIMEOUT_S = 5.0
_PARAMS_TOO_LARGE = "The parameters of a call may have at most {} bytes of JSON (TOOL_AGENT_MAX_PARAMS_BYTES). POST /files takes files."
_TASK_TOO_LARGE = "What is asked for may have at most {} bytes of JSON (TOOL_AGENT_MAX_PARAMS_BYTES): say less, give smaller examples."
_BATCH_TOO_LARGE = "A batch may have at most {} bytes of JSON; make it several, or have POST /files take what is large in it."
_FILE_TOO_LARGE = "A file may have at most {} bytes (TOOL_AGENT_MAX_FILE_BYTES)."

_ACTION_TOO_LARGE = "What an agent says may have at most {} bytes, its <ACTION> block included. POST /files takes files."

_MESSAGE_TOO_LARGE = "A message may have at most {} bytes (TOOL_AGENT_CHAT_MESSAGE_BYTES). POST /files takes files."

_DETAILS = {
    "/chat": _MESSAGE_TOO_LARGE,
    "/files": _FILE_TOO_LARGE,
    "/run_tools": _BATCH_TOO_LARGE,
    "/agent/action": _ACTION_TOO_LARGE,
    "/create_tool": _TASK_TOO_LARGE,
}


class Gate:
    """With an API key, every request needs it as bearer token, but for `/health` and the return of logins; so does a websocket.

    Without a key the service listens on loopback only. From outside, only a browser can reach it: by a page whose host name was made to
    point here (refused by `Host`), or that posts to a foreign address (refused by `Origin`).
    """

    def __init__(self, app: ASGIApp, api_key: str | None, allowed_hosts: Collection[str]) -> None:
        self._app = app
        self._key = api_key.encode() if api_key is not None else None
        # None, for an invalid host, would let in `Origin: null`.
        self._hosts = {host for host in map(_host_of, allowed_hosts) if host is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The lifespan comes from the server itself, everything else from outside.
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


class BodyLimit:
    """Refuses bodies of more than `default` bytes and `BODY_SLACK`, also while they are read. `by_path` has other limits.

    Starlette's own limit answers in plain text, and closes the connection of clients that are still writing.
    """

    def __init__(self, app: ASGIApp, default: int, by_path: Mapping[str, int]) -> None:
        self._app, self._default, self._by_path = app, default, by_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._by_path.get(scope["path"], self._default)
        limit, detail = most + BODY_SLACK, _detail(scope["path"]).format(most)
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > limit:
            await _drain(receive, limit)
            await refusal_response(Refusal(ProblemKind.BODY_TOO_LARGE, detail))(scope, receive, send)
            return
        await self._app(scope, _bounded(receive, limit, detail), send)


def _refusal_without_key(headers: Headers, key: bytes) -> Refusal | None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secrets.compare_digest(given.strip(" ").encode("latin-1"), key):
        return None
    return Refusal(ProblemKind.UNAUTHORIZED, "This service wants its API key: `Authorization: Bearer <key>`.", headers=_CHALLENGE)


def _conflict(headers: Headers) -> Refusal | None:
    """The refusal if a header occurs twice with different values."""
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


def _detail(path: str) -> str:
    is_repair = path.startswith("/tools/") and path.endswith("/repair")
    return _TASK_TOO_LARGE if is_repair else _DETAILS.get(path, _PARAMS_TOO_LARGE)


def _bounded(receive: Receive, limit: int, detail: str) -> Receive:
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            if message.get("more_body"):
                await _drain(receive, limit)
            # While reading a body, FastAPI lets no other exceptions pass.
            raise HTTPException(ProblemKind.BODY_TOO_LARGE.status, detail)
        return message

    return bounded


async def _drain(receive: Receive, limit: int) -> None:
    """Read on, so that a client that writes all of its body first gets the answer instead of a reset connection."""
    left = 2 * limit + DRAINED
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_TIMEOUT_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return
