"""Logins at registered MCP servers: begun, finished, and renewed once for all their users."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Protocol, TypeVar

import httpx2
from mcp.client.auth.utils import extract_scope_from_www_auth
from mcp.server.request_state import InvalidRequestState
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import JSONRPC_VERSION
from pydantic import BaseModel, ValidationError

from engine.runtimes.failures import NotSent
from engine.runtimes.http.remote_keys import Secrets, filled, key_of, with_keys
from engine.runtimes.mcp.oauth.flow import Flow, Granted, Visit
from engine.runtimes.mcp.oauth.logins import LOGIN_REQUIRED, is_refusal, login_required
from engine.runtimes.mcp.oauth.sending import Ask
from engine.store.clock import now
from engine.store.mcp_logins import McpLoginRow, McpLoginRows, PendingLogin
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.mcp_oauth import McpGrant
from toolagent.contracts.sources import McpSource

_GOOD_FOR = timedelta(minutes=15)
_EARLIER_S = 10.0
"""How long before its expiry a token is renewed."""
_LEASE_S = 60.0
"""Longer than a renewal takes: after that, its process is dead."""
_AGAIN_S = 0.1
_CLOSE_S = 20.0
"""Longer than a renewal takes."""
_TOLD = 200
_UNAUTHORIZED, _FORBIDDEN = 401, 403
_MOST_SCOPE = 2_000
"""Most characters of further scopes: they go into the URL of the login."""
_SHOWN = 8
"""How many of the last tokens of a connection are masked in its server's messages."""

T = TypeVar("T", bound=BaseModel)

_Renewal = tuple[str, str, str | None]
"""Name and URL of a server, and the token to renew."""


class LoginFailed(Exception):
    """A login failed. The message is for a person at a browser."""


class Seal(Protocol):
    """Encrypts with a key that all hosts and front doors share, as `mcp.server.request_state.AESGCMRequestStateCodec` does."""

    def seal(self, payload: bytes) -> str: ...
    def unseal(self, token: str) -> bytes:
        """Raises InvalidRequestState."""
        ...


class McpLogins:
    """All raise StoreUnavailableError."""

    def __init__(self, rows: McpLoginRows, seal: Seal, ask: Ask, secrets: Secrets) -> None:
        self._rows, self._seal, self._ask, self._secrets = rows, seal, ask, secrets
        self._renewals: dict[_Renewal, asyncio.Task[tuple[McpLoginRow, Granted]]] = {}

    def of(self, source: McpSource) -> "StoredLogin":
        """The login for one connection to a registered server at a URL."""
        return StoredLogin(self, source)

    async def begin(self, source: McpSource, redirect_uri: str) -> PendingLogin | None:
        """Begin a login for a browser; None if the service logged in by itself. Raises NotSent."""
        name, url = _place(source)
        row = await self._rows.get(name, url)
        refusal = await self._ask(_first_request(source, filled(url, self._secrets)[0], with_keys(source.headers, self._secrets)))
        if not is_refusal(refusal) and row is not None:
            # It refused a call before: some servers accept the first request of anybody and refuse calls.
            refusal = httpx2.Response(_UNAUTHORIZED)
        if not is_refusal(refusal):
            message = f"The MCP server {name} wants no login: it answered {refusal.status_code} without one."
            raise NotSent(ErrorType.VALIDATION_ERROR, message)
        flow = self.flow(source, redirect_uri=redirect_uri, more=row.scope if row else None)
        visit = await flow.begun(refusal)
        if visit is None:
            await self._rows.keep(name, url, self.sealed(flow.granted))
            return None
        return PendingLogin(name, url, visit.state, visit.url, now() + _GOOD_FOR, self.sealed(visit))

    async def keep(self, login: PendingLogin) -> bool:
        """Store a pending login, in place of an earlier one. False if the server is not registered any more."""
        return await self._rows.begin(login)

    async def finish(self, state: str, code: str, iss: str | None, error: str) -> str:
        """Finish a login when the browser returns. Returns the name of the server. Raises LoginFailed."""
        pending = await self._rows.take(state) if state else None
        if pending is None:
            raise LoginFailed("This login is not known, or over: each can be finished once, and a newer one takes its place.")
        again = f"Make a new one: toolagent mcp login {pending.name}"
        if pending.until < now():
            raise LoginFailed(f"This login has expired. {again}")
        if error or not code:
            raise LoginFailed(f"The authorization server did not agree: {error or 'it gave no code'}. {again}")
        try:
            visit = self.opened(Visit, pending.visit, pending.name)
            flow = Flow(_without_query(pending.url), self._ask, visit.granted, redirect_uri=visit.redirect_uri)
            await flow.returned(visit, code, iss)
        except NotSent as failure:
            raise LoginFailed(f"{failure.message} {again}") from failure
        if not await self._rows.keep(pending.name, pending.url, self.sealed(flow.granted)):
            raise LoginFailed(f"The MCP server {pending.name} was removed meanwhile.")
        return pending.name

    async def forget_unregistered(self, name: str) -> None:
        """Remove what was stored for a server that was not registered in the end."""
        await self._rows.forget_unregistered(name)

    async def read(self, source: McpSource) -> tuple[McpLoginRow, Granted]:
        """The stored login. Raises NotSent if it was sealed with another key."""
        name, url = _place(source)
        row = await self._rows.get(name, url) or McpLoginRow(name, url)
        granted = self.opened(Granted, row.sealed, name) if row.sealed else Granted()
        if granted.given != source.oauth:
            # It belongs to another OAuth client, perhaps of another authorization server.
            granted = Granted()
        granted.remember()
        return row, granted

    async def logged_in(self, source: McpSource, refusal: httpx2.Response) -> tuple[McpLoginRow, Granted]:
        """Log in as the service itself. Raises NotSent."""
        name, url = _place(source)
        flow = self.flow(source)
        await flow.begun(refusal)
        await self._rows.keep(name, url, self.sealed(flow.granted), is_new=True)
        return await self.read(source)

    async def renewed(self, source: McpSource, old: Granted) -> tuple[McpLoginRow, Granted]:
        """Renew the token of `old`. Raises NotSent.

        The renewal continues if the caller is cancelled: the answer may hold the only token for the next renewal.
        """
        key = (*_place(source), _token_of(old))
        task = self._renewals.get(key)
        if task is None:
            task = self._renewals[key] = asyncio.create_task(self._renew(source, key[-1]), name="renew an MCP login")
            task.add_done_callback(lambda done: self._note_end(key, done))
        return await asyncio.shield(task)

    async def require(self, row: McpLoginRow, why: str = "", scope: str | None = None) -> NotSent:
        """Note that a person has to log in, for `GET /mcp_servers`. Returns the error for the call."""
        await self._rows.require(row.name, row.url, scope, row.number)
        return _required(row.name, why)

    async def close(self) -> None:
        """Wait for running renewals."""
        if self._renewals:
            await asyncio.wait([*self._renewals.values()], timeout=_CLOSE_S)

    def flow(self, source: McpSource, granted: Granted | None = None, *, redirect_uri: str | None = None, more: str | None = None) -> Flow:
        """The OAuth flow at a server. Raises NotSent if the client's secret is not set."""
        given = source.oauth
        secret = key_of(given.client_secret, self._secrets) if given else None
        return Flow(_without_query(_place(source)[1]), self._ask, granted, redirect_uri=redirect_uri, given=given, secret=secret, more=more)

    def sealed(self, value: BaseModel) -> str:
        return self._seal.seal(value.model_dump_json(exclude_none=True).encode())

    def opened(self, kind: type[T], sealed: str, name: str) -> T:
        """The value that was sealed. Raises NotSent."""
        try:
            return kind.model_validate_json(self._seal.unseal(sealed))
        except (InvalidRequestState, ValidationError) as error:
            remedy = "Give all hosts one TOOL_AGENT_SECRET_MCP_STATE_KEY, and log in again."
            message = f"The login at {name} was sealed with another key. {remedy}"
            raise login_required(message) from error

    async def _renew(self, source: McpSource, old: str | None) -> tuple[McpLoginRow, Granted]:
        row, granted = await self.read(source)
        if _token_of(granted) != old:
            # Another process renewed it since `old` was read.
            return row, granted
        while not await self._rows.lease(row, _LEASE_S):
            # Another process renews it.
            await asyncio.sleep(_AGAIN_S)
            newer, granted = await self.read(source)
            if newer.number != row.number:
                return newer, granted
        flow = self.flow(source, granted)
        try:
            await flow.renewed()
        except NotSent as failure:
            if failure.details.get("reason") != LOGIN_REQUIRED:
                await self._rows.give_back(row)
                raise
            await self._rows.drop(row)
            raise _required(row.name, f"{failure.message} ") from failure
        if not await self._rows.renew(row, self.sealed(flow.granted)):
            return await self.read(source)
        return replace(row, number=row.number + 1), flow.granted

    def _note_end(self, key: _Renewal, done: asyncio.Task[tuple[McpLoginRow, Granted]]) -> None:
        self._renewals.pop(key, None)
        if not done.cancelled():
            done.exception()


class StoredLogin:
    """The login of one connection to one server. A refused token is read again."""

    def __init__(self, logins: McpLogins, source: McpSource) -> None:
        self._logins, self._source = logins, source
        self._granted: Granted | None = None
        self._fresh: str | None = None
        """The last token that replaced a refused one."""
        self._recent = deque[str](maxlen=_SHOWN)
        self.shown: list[str] = []

    async def token(self) -> str | None:
        if self._granted is None or self._is_over(self._granted):
            _, self._granted = await self._logins.read(self._source)
            if self._is_over(self._granted) and self._can_renew(self._granted):
                _, self._granted = await self._logins.renewed(self._source, self._granted)
        return self._noted(self._granted)

    async def renewed(self, used: str | None, refusal: httpx2.Response, *, is_again: bool = False) -> str:
        row, granted = await self._logins.read(self._source)
        scope = extract_scope_from_www_auth(refusal) if refusal.status_code == _FORBIDDEN else None
        if _token_of(granted) in (None, used):
            if scope is not None:
                kept = scope if len(scope) <= _MOST_SCOPE else None
                raise await self._logins.require(row, f"It wants more scopes: {scope[:_TOLD]}. ", kept)
            if is_again and used == self._fresh:
                raise await self.refused()
            if self._can_renew(granted):
                _, granted = await self._logins.renewed(self._source, granted)
            elif self._source.oauth is not None and self._source.oauth.grant is McpGrant.CLIENT_CREDENTIALS:
                _, granted = await self._logins.logged_in(self._source, refusal)
            self._fresh = _token_of(granted)
        self._granted = granted
        token = self._noted(granted)
        if token is None or token == used:
            raise await self._logins.require(row)
        return token

    async def refused(self) -> NotSent:
        row, _ = await self._logins.read(self._source)
        return await self._logins.require(row, "It refuses tokens that it was just given. ")

    def _can_renew(self, granted: Granted) -> bool:
        return self._logins.flow(self._source, granted).can_renew

    def _is_over(self, granted: Granted) -> bool:
        return granted.expires_at is not None and granted.expires_at - _EARLIER_S < time.time()

    def _noted(self, granted: Granted) -> str | None:
        """The token, which from now on is masked in the server's messages."""
        token = _token_of(granted)
        if token is None:
            return None
        if token not in self._recent:
            if len(self._recent) == _SHOWN:
                self.shown.remove(self._recent[0])
            self._recent.append(token)
            self.shown.append(token)
        return token


def _place(source: McpSource) -> tuple[str, str]:
    """Name and URL of a registered server."""
    return source.server or "", source.url or ""


def _token_of(granted: Granted) -> str | None:
    return granted.tokens.access_token if granted.tokens else None


def _without_query(url: str) -> str:
    """The URL that a token is for. A query may hold a key."""
    return url.partition("?")[0]


def _first_request(source: McpSource, url: str, given: Mapping[str, str]) -> httpx2.Request:
    """A first request, which a server with a login refuses. `given` are the configured headers, which routing may need."""
    headers = {**given, "Accept": "application/json, text/event-stream", MCP_PROTOCOL_VERSION_HEADER: "2025-11-25"}
    if source.transport == "sse":
        return httpx2.Request("GET", url, headers=headers)
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tool-agent", "version": "1"}}
    return httpx2.Request("POST", url, headers=headers, json={"jsonrpc": JSONRPC_VERSION, "id": 0, "method": "initialize", "params": about})


def _required(name: str, why: str) -> NotSent:
    remedy = f"Run `toolagent mcp login {name}`, or POST /mcp_servers/{name}/login, and open the URL in a browser."
    return login_required(f"The MCP server {name} wants a login. {why}{remedy}")
