"""Sends one request to a tool over HTTP, once."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

import httpx
from pydantic import JsonValue

from engine.disk.below import open_below, read_in_pieces
from engine.network.peers import LargeAnswer, peer_client
from engine.network.tls import machine_tls
from engine.network.unix_transport import UnixTransport
from engine.runtimes.failures import CallFailed, NotSent, no_answer, timed_out
from engine.runtimes.http.destination import Judge, PinnedTransport
from engine.runtimes.http.json_answers import MAX_RESULT_VALUES
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.http.reply import Received, meaning_of, read
from engine.runtimes.http.request_parts import Body, Field, Multipart, Octets, Places, RequestParts, Written, request_parts
from engine.runtimes.runtime import ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import HttpMethod

_UNIX = "unix:"
_PUBLIC = "public"
# Servers drop idle connections (uvicorn after 5 s): a request on the edge of that would fail with an unknown outcome.
_KEEPALIVE_S = 2.0
_CONNECT_TIMEOUT_S = 10.0
_MAX_HEALTH_BYTES = 64 * 1024
_LARGE_BYTES = 64 * 1024
"""Longer answers are parsed in a thread, so that the event loop stays free."""

_OWN_HEADERS = ("Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Expect", "TE", "Trailer", "X-Output-Dir")

_IN = "in"
_PARTS = 3
"""The last parts of the path of a call's input folder: the tool's folder, the call's folder, `in`. Tools see nothing above them."""

_Part: TypeAlias = tuple[str | None, bytes | BinaryIO, str | None]


@dataclass(frozen=True, slots=True)
class Target:
    """Where and how to send. `path` may hold `{name}`; `places` says where other parameters go; `secrets` are masked in the answer.

    `through_gateways`: gateways before the tool may answer in its place. `only_public`: addresses must be public, or of the policy's
    `private_hosts`. `gives_text`: the answer may be a text.
    """

    endpoint: str
    method: HttpMethod
    path: str
    headers: Mapping[str, str]
    secrets: Sequence[str] = ()
    through_gateways: bool = False
    only_public: bool = False
    gives_text: bool = False
    places: Places = field(default_factory=Places)


@dataclass(frozen=True, slots=True)
class Health:
    """The answer of a health path. `active` counts running requests, `sessions` open sessions; None if the tool does not tell."""

    status: int
    active: int | None
    sessions: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A body for httpx. `headers` are the body's; httpx writes those of multipart bodies itself."""

    content: bytes | AsyncIterator[bytes] | None = None
    files: list[tuple[str, _Part]] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


class HttpExchange:
    """Shared by the runtimes that speak HTTP; endpoints are `http://…`, `https://…` or `unix:/path`. The owner closes it with `aclose`.

    Follows no redirects, uses no proxies of the environment, keeps connections alive for two seconds.
    """

    def __init__(
        self,
        *,
        max_result_bytes: int = 1024 * 1024,
        max_result_values: int = MAX_RESULT_VALUES,
        public: Judge | None = None,
        keepalive_s: float = _KEEPALIVE_S,
    ) -> None:
        self.public: Judge = public or PublicServers()
        self.max_result_bytes, self.max_result_values = max_result_bytes, max_result_values
        self._keepalive_s = keepalive_s
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._large = LargeAnswer.slots()

    def unconnected(self) -> "HttpExchange":
        """A second exchange that opens a connection for each request: no request can affect a later one."""
        return HttpExchange(
            max_result_bytes=self.max_result_bytes, max_result_values=self.max_result_values, public=self.public, keepalive_s=0.0
        )

    def with_judge(self, public: Judge) -> "HttpExchange":
        """A second exchange with another judge for `only_public`."""
        return HttpExchange(max_result_bytes=self.max_result_bytes, max_result_values=self.max_result_values, public=public)

    async def aclose(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()

    async def forget(self, endpoint: str) -> None:
        """Closes the connections to a unix socket whose tool has ended. An unknown endpoint is no error."""
        client = self._clients.pop(_socket_of(endpoint), None) if endpoint.startswith(_UNIX) else None
        if client is not None:
            await client.aclose()

    async def call(self, target: Target, request: ToolRequest) -> JsonValue:
        """Sends the request once and returns the tool's answer; `timeout_s` covers the whole exchange.

        Raises NotSent if no connection came about or the request cannot be built, CallFailed for all later failures.
        """
        parts = request_parts(target.method, target.path, request.params, target.places)
        async with sent(parts.body, request.output_dir) as body:
            built = self._build(target, request, parts, body)
            with LargeAnswer(self._large) as large:
                try:
                    async with asyncio.timeout(request.timeout_s):
                        received = await self._exchange(built, target, large)
                except TimeoutError:
                    raise timed_out(request.timeout_s) from None
                means = partial(
                    meaning_of,
                    received,
                    self.max_result_bytes,
                    target.secrets,
                    through_gateways=target.through_gateways,
                    gives_text=target.gives_text,
                    max_values=self.max_result_values,
                )
                return await asyncio.to_thread(means) if len(received.body) > _LARGE_BYTES else means()

    async def health(self, endpoint: str, path: str, timeout_s: float, *, only_public: bool = False) -> Health | None:
        """Asks once; None if there is no answer within `timeout_s` seconds."""
        try:
            client, url = self._client(endpoint, only_public=only_public), _url(endpoint, path)
            async with asyncio.timeout(timeout_s), client.stream("GET", url, headers={"Accept": "application/json"}) as response:
                return await _health(response)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, NotSent):
            return None

    def _build(self, target: Target, request: ToolRequest, parts: RequestParts, body: Sent) -> httpx.Request:
        accept = "*/*" if target.gives_text else "application/json"
        headers = {"Accept": accept, "Accept-Encoding": "identity", "Idempotency-Key": request.call_id, **target.headers}
        headers |= body.headers
        # No parameter replaces our own headers.
        ours = {name.lower() for name in (*headers, *_OWN_HEADERS, *(["Content-Type"] if body.files else []))}
        headers |= {name: value for name, value in parts.headers if name.lower() not in ours}
        try:
            return self._client(target.endpoint).build_request(
                target.method,
                # Merged: `params=` would replace the query that the tool's own path has.
                httpx.URL(_url(target.endpoint, parts.path)).copy_merge_params(list(parts.query)),
                content=body.content,
                files=body.files,
                headers=headers,
                # Shorter than the time-out of the call, so that the failure says that nothing was sent.
                timeout=httpx.Timeout(None, connect=min(_CONNECT_TIMEOUT_S, 0.9 * request.timeout_s)),
            )
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            # The error may quote a header or the query, which may hold a key.
            place = target.path.partition("?")[0]
            raise NotSent(
                ErrorType.VALIDATION_ERROR, f"The request to {target.method} {place} cannot be written ({type(error).__name__})."
            ) from None

    async def _exchange(self, built: httpx.Request, target: Target, large: LargeAnswer) -> Received:
        endpoint = target.endpoint
        response: httpx.Response | None = None
        try:
            response = await self._client(endpoint, only_public=target.only_public).send(built, stream=True)
            return await read(response, self.max_result_bytes, large)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            raise NotSent(ErrorType.UNAVAILABLE, f"No connection to {endpoint}: {error or 'timed out'}", {"endpoint": endpoint}) from error
        except httpx.HTTPError as error:
            raise no_answer(f"The connection to the tool broke before it had answered ({type(error).__name__}).") from error
        finally:
            if response is not None:
                await response.aclose()

    def _client(self, endpoint: str, *, only_public: bool = False) -> httpx.AsyncClient:
        """One client for TCP, one for TCP to public addresses, one for each unix socket."""
        socket = _PUBLIC if only_public else _socket_of(endpoint)
        if socket not in self._clients:
            self._clients[socket] = peer_client(self._transport(socket))
        return self._clients[socket]

    def _transport(self, socket: str) -> httpx.AsyncBaseTransport:
        if socket not in ("", _PUBLIC):
            return UnixTransport(socket, self._keepalive_s)
        kept = 100 if self._keepalive_s and socket != _PUBLIC else 0
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=kept, keepalive_expiry=self._keepalive_s)
        tcp = httpx.AsyncHTTPTransport(verify=machine_tls(), trust_env=False, limits=limits)
        return PinnedTransport(self.public, tcp) if socket == _PUBLIC else tcp


def _socket_of(endpoint: str) -> str:
    return endpoint.removeprefix(_UNIX) if endpoint.startswith(_UNIX) else ""


def _url(endpoint: str, path: str) -> str:
    return ("http://tool" if endpoint.startswith(_UNIX) else endpoint.rstrip("/")) + path


async def _health(response: httpx.Response) -> Health:
    """An unreadable body still has a status."""
    try:
        told: JsonValue = json.loads((await read(response, _MAX_HEALTH_BYTES)).body)
    except (CallFailed, ValueError, RecursionError):
        told = None
    counts = told if isinstance(told, dict) else {}
    return Health(response.status_code, _count(counts.get("active")), _count(counts.get("sessions")))


def _count(told: JsonValue) -> int | None:
    return told if isinstance(told, int) and not isinstance(told, bool) else None


@contextlib.asynccontextmanager
async def sent(body: Body | None, output_dir: Path) -> AsyncGenerator[Sent]:
    """The body for httpx; files are read while they are sent.

    `output_dir` is the call's. Raises NotSent (`validation_error`) for a file that does not belong to the call.
    """
    with contextlib.ExitStack() as opened:
        match body:
            case None:
                yield Sent()
            case Written(content, media_type):
                yield Sent(content, headers={"Content-Type": media_type})
            case Octets(name, path, media_type):
                file = opened.enter_context(await asyncio.to_thread(_opened, name, path, output_dir))
                size = os.fstat(file.fileno()).st_size
                yield Sent(read_in_pieces(file), headers={"Content-Type": media_type, "Content-Length": str(size)})
            case Multipart(fields):
                # Without any part httpx would not write a multipart body.
                parts = [(one.name, await _part(one, output_dir, opened)) for one in fields]
                yield Sent(files=parts or [("", (None, b"", None))])


async def _part(one: Field, output_dir: Path, opened: contextlib.ExitStack) -> _Part:
    if not one.is_file:
        return None, one.value.encode("utf-8", "replace"), one.media_type
    file = opened.enter_context(await asyncio.to_thread(_opened, one.name, one.value, output_dir))
    return Path(one.value).name, file, None


def _opened(name: str, path: str, output_dir: Path) -> BinaryIO:
    """Follows no links, because the tool may write in the folder of the call. Blocks."""
    root, own = Path(*output_dir.parts[:-_PARTS]), output_dir.with_name(_IN)
    try:
        return open_below(root, *own.relative_to(root).parts, *Path(os.path.normpath(path)).relative_to(own).parts)
    except (OSError, ValueError) as error:
        message = f"The parameter {name!r} names no file of this call. Upload one with POST /files and give its id."
        raise NotSent(ErrorType.VALIDATION_ERROR, message, {"path": f"$.{name}"}) from error
