"""Calls remote tools over HTTP."""

import base64
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pydantic import JsonValue

from engine.runtimes.failures import CallFailed
from engine.runtimes.http.client_tokens import ClientTokens
from engine.runtimes.http.exchange import HttpExchange, Target
from engine.runtimes.http.remote_keys import Secrets, filled, not_there
from engine.runtimes.http.request_parts import Places
from engine.runtimes.runtime import Progress, Running, ToolRequest, Unstarted
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import Envelope, RemoteSource

_HEADER_TEXT = re.compile(r"[\x20-\x7e]+")
_COOKIE_TEXT = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+")
"""RFC 6265, section 4.1.1."""
_PAIRS = {"basic": "`user:password`", "client_credentials": "`client_id:client_secret`"}
_UNAUTHORIZED = 401


class RemoteRuntime(Unstarted):
    """The runtime of RemoteSource. It starts nothing: a call shows whether the tool is there."""

    def __init__(self, http: HttpExchange, secrets: Secrets, tables: HttpExchange | None = None) -> None:
        """`tables` is the exchange for tools of external tables; by default `http`."""
        self._http, self._secrets, self._tables = http, secrets, tables or http
        self._tokens = {False: ClientTokens(http), True: ClientTokens(self._tables)}

    async def start(self, tool: ToolManifest, source: RemoteSource, progress: Progress) -> Running:
        progress(f"{tool.tool_id} is remote")
        return Running(endpoint=source.remote_url.partition("?")[0], started_at=datetime.now(UTC))

    async def call(self, running: Running, source: RemoteSource, request: ToolRequest) -> JsonValue:
        shown = await self._shown(source, request)
        path, keys = filled(_path(source), self._secrets)
        target = Target(
            running.endpoint,
            source.http_method,
            path,
            shown.headers,
            (*shown.secrets, *keys),
            through_gateways=True,
            places=Places.of(source),
            only_public=source.only_public,
            gives_text=source.gives_text,
        )
        http = self._tables if source.table else self._http
        envelope = source.envelope
        if envelope is not None:
            request = replace(request, params={**envelope.fixed, envelope.params_field: request.params})
        try:
            answer = await http.call(target, request)
        except CallFailed as failure:
            if shown.token and failure.details.get("status_code") == _UNAUTHORIZED:
                self._tokens[source.table is not None].forget(shown.token)
            raise
        return answer if envelope is None else _unwrapped(answer, envelope)

    async def _shown(self, source: RemoteSource, request: ToolRequest) -> "_Shown":
        """The headers with the secret, which is looked up anew for each call. Raises NotSent if it is missing or has a wrong form."""
        if source.remote_api_key is None:
            return _Shown({}, ())
        name = source.remote_api_key.removeprefix("secret:")
        key = (self._secrets(name) or "").strip()
        if source.auth_kind in ("basic", "client_credentials") and key and ":" not in key:
            raise not_there(name, f"has to be {_PAIRS[source.auth_kind]}, and has no colon", must_be=True)
        match source.auth_kind:
            case "basic" if key:
                # In UTF-8, which RFC 7617 allows: it need not be ASCII.
                encoded = base64.b64encode(key.encode()).decode()
                return _Shown({source.auth_header: f"Basic {encoded}"}, (key, key.partition(":")[2], encoded))
            case "client_credentials" if key and source.token_url:
                token = await self._tokens[source.table is not None].of(source, key, request)
                return _Shown({source.auth_header: f"{source.auth_scheme} {token}".strip()}, (key, key.partition(":")[2], token), token)
            case "cookie" if key:
                if not _COOKIE_TEXT.fullmatch(key):
                    raise not_there(name, "cannot be sent in a cookie: it holds a space, a quote, `,`, `;` or what is not ASCII")
                return _Shown({"Cookie": f"{source.auth_cookie}={key}"}, (key,))
            case "key" if _HEADER_TEXT.fullmatch(key):
                return _Shown({source.auth_header: f"{source.auth_scheme} {key}".strip()}, (key,))
            case _:
                said = (
                    "cannot be sent as it is: it holds characters outside ASCII, or its source does not say where to"
                    if key
                    else "is not set"
                )
                raise not_there(name, said)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the server is shown; `secrets` are masked in its answer."""

    headers: dict[str, str]
    secrets: tuple[str, ...]
    token: str = ""


def _unwrapped(answer: JsonValue, envelope: Envelope) -> JsonValue:
    if isinstance(answer, dict) and envelope.result_field in answer:
        return answer[envelope.result_field]
    raise CallFailed(ErrorType.EXECUTION_ERROR, f"The answer has no field {envelope.result_field!r}, in which the result is expected.")


def _path(source: RemoteSource) -> str:
    """The path of a call, with the queries of its URL and of its path."""
    path, query = source.remote_path or source.endpoint_path, source.remote_url.partition("?")[2]
    whole = path if path.startswith("/") else f"/{path}"
    return f"{whole}{'&' if '?' in whole else '?'}{query}" if query else whole
