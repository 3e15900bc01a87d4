"""Tokens of the OAuth 2 client credentials grant, kept in memory until they expire."""

import asyncio
import base64
import time
from dataclasses import dataclass, replace
from urllib.parse import quote, urlsplit

from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NotSent, RuntimeFailure
from engine.runtimes.http.exchange import HttpExchange, Target
from engine.runtimes.http.request_parts import Places
from engine.runtimes.runtime import ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import RemoteSource

_EARLIER_S = 30.0
_UNSAID_S = 300.0
_LONGEST_S = 86_400.0
_ASK_S = 30.0
_REFUSED = (400, 401)
"""The answer of servers that take the client's secret only in the form."""


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    until: float


class ClientTokens:
    """Keeps a token for each server, client and scopes."""

    def __init__(self, http: HttpExchange) -> None:
        self._http = http
        self._tokens: dict[tuple[str, ...], _Token] = {}
        self._asking = asyncio.Lock()

    async def of(self, source: RemoteSource, client: str, request: ToolRequest) -> str:
        """`client` is `client_id:client_secret`. Raises NotSent if there is no token."""
        key = (source.token_url or "", client, *source.token_scopes)
        async with self._asking:
            there = self._tokens.get(key)
            if there is None or there.until <= time.monotonic():
                self._tokens = {old: token for old, token in self._tokens.items() if token.until > time.monotonic()}
                there = self._tokens[key] = await self._asked(source, client, request)
            return there.value

    def forget(self, token: str) -> None:
        """Drops a token that the server refused."""
        self._tokens = {key: there for key, there in self._tokens.items() if there.value != token}

    async def _asked(self, source: RemoteSource, client: str, request: ToolRequest) -> _Token:
        name, _, secret = client.partition(":")
        basic = base64.b64encode(f"{quote(name, safe='')}:{quote(secret, safe='')}".encode()).decode()
        form: dict[str, JsonValue] = {"grant_type": "client_credentials"}
        if source.token_scopes:
            form["scope"] = " ".join(source.token_scopes)
        asking = replace(request, params=form, timeout_s=min(request.timeout_s, _ASK_S))
        try:
            try:
                said = await self._http.call(_target(source, {"Authorization": f"Basic {basic}"}, (secret, basic)), asking)
            except CallFailed as failure:
                if failure.details.get("status_code") not in _REFUSED:
                    raise
                asking = replace(asking, params={**form, "client_id": name, "client_secret": secret})
                said = await self._http.call(_target(source, {}, (secret,)), asking)
        except RuntimeFailure as failure:
            raise _no_token(source, failure.message) from failure
        return _token(source, said)


def _target(source: RemoteSource, headers: dict[str, str], secrets: tuple[str, ...]) -> Target:
    parts = urlsplit(source.token_url or "")
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    places = Places(encoding="form")
    return Target(f"{parts.scheme}://{parts.netloc}", "POST", path, headers, secrets, only_public=source.only_public, places=places)


def _token(source: RemoteSource, said: JsonValue) -> _Token:
    match said:
        case {"access_token": str(token)} if token.isascii() and token.isprintable() and token:
            lasts = said.get("expires_in")
            seconds = float(lasts) if isinstance(lasts, int | float) and 0 < lasts < _LONGEST_S else _UNSAID_S
            return _Token(token, time.monotonic() + max(seconds - _EARLIER_S, 1.0))
        case _:
            raise _no_token(source, "its answer has no `access_token`")


def _no_token(source: RemoteSource, why: str) -> NotSent:
    host = urlsplit(source.token_url or "").netloc
    return NotSent(ErrorType.DEPENDENCY_ERROR, f"No token came from {host}, so the tool was not called: {why}", {"token_server": host})
