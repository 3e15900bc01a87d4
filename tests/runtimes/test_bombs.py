"""Each place that reads from a peer limits what it unpacks and reads; this list has all of them."""

import ast
import asyncio
import gzip
import json
import re
import tracemalloc
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from engine.callbacks.posting import CallbackPoster, callback_destinations
from engine.making.dependencies.index_addresses import IndexAway
from engine.making.dependencies.simple_index import SimpleIndex
from engine.making.gate.trial import _posted  # pyright: ignore[reportPrivateUsage] - it takes no way of calls, so no other reads for it
from engine.roles.provider import ModelFailure
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers.anthropic import AnthropicProvider
from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.exchange import HttpExchange, Target
from tests.builtin.conformance import run_alone
from tests.runtimes.conftest import request_of
from toolagent.client.http import ToolAgentHttp, WrongContent
from toolagent.contracts.callbacks import Callback
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent_service.contracts.model import Message, ModelRequest, Text

UNPACKED_BYTES = 64 * 1024 * 1024
LITTLE_BYTES = 4 * 1024 * 1024
ONCE = gzip.compress(bytes(UNPACKED_BYTES), 1)
TWICE = gzip.compress(ONCE)
_PIECE_BYTES = 64 * 1024
ROOT = Path(__file__).parents[2]

OWN_CLIENTS = {
    "engine/network/peers.py": "the clients of the engine, for tools, documents, callbacks, indexes and http_request",
    "engine/runtimes/mcp/web.py": "the SDK's of MCP, for servers over HTTP: its transport bounds what comes, and takes nothing packed",
    "engine/runtimes/mcp/oauth/sending.py": "the SDK's of MCP, for logins there: bounded, and nothing packed",
    "engine/making/inside/mcp_bridge.py": "in the sandbox, to the server in its own process",
    "engine/roles/providers/anthropic_client.py": "the model's, bounded by anthropic_answers",
    "packages/toolagent/src/toolagent/cli/mcp_stdio.py": "to the service that the user names: answers are handed on as they are",
    "packages/toolagent/src/toolagent/client/http.py": "the service's, for the command line and other agents",
    "packages/toolagent/src/toolagent/testing/servers/recorder.py": "a test server's, to a model's endpoint",
}
OWN_READERS = {
    "engine/network/peers.py": "the one reader of answers",
    "engine/runtimes/builtin/runcomfy/comfy.py": "pictures, in pieces to a file of bounded size, below the hook of the engine's clients",
    "engine/runtimes/docker/building/image_builds.py": "of the Docker engine, which is trusted with the machine",
    "packages/toolagent/src/toolagent/client/http.py": "below a bounding hook",
    "engine/runtimes/mcp/oauth/sending.py": "in pieces, up to 256 KiB",
    "engine/runtimes/mcp/oauth/flow.py": "of the request that it sends; answers come from sending, whole",
    "packages/toolagent/src/toolagent/client/http_files.py": "below a bounding hook",
    "packages/toolagent/src/toolagent/client/mcp_bridge.py": "in pieces, of the service that the user names",
    "packages/toolagent/src/toolagent/testing/servers/recorder.py": "below a bounding hook",
}


@dataclass
class Peer:
    """Answers the first request with `first`, the others with `then`; `drips` never ends."""

    url: str
    first: bytes = b""
    then: bytes = b""
    drips: bool = False
    asked: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                await reader.readexactly(sum(length))
                self.asked += 1
                said = memoryview(self.first if self.asked == 1 else self.then)
                for begin in range(0, len(said), _PIECE_BYTES):
                    writer.write(said[begin : begin + _PIECE_BYTES])
                    await writer.drain()
                while self.drips:
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.01)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left, as it should
        finally:
            writer.close()


@pytest_asyncio.fixture
async def peer() -> AsyncGenerator[Peer]:
    peer = Peer("")
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield peer


def packed(body: bytes, encoding: str, status: int = 200, kind: str = "application/json", location: str = "") -> bytes:
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", f"Content-Type: {kind}", f"Content-Encoding: {encoding}"]
    return "\r\n".join([*head, *([f"Location: {location}"] if location else []), "", ""]).encode() + body


@contextmanager
def little_memory() -> Generator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < LITTLE_BYTES, f"{peak_bytes:,} bytes were held"


async def answer(url: str) -> None:
    async with aclosing(HttpExchange(max_result_bytes=64 * 1024)) as http:
        with pytest.raises(CallFailed) as failure:
            await http.call(Target(url, "POST", "/", {}), request_of(20.0))
    assert failure.value.error_type is ErrorType.OUTPUT_VALIDATION_ERROR


async def health(url: str) -> None:
    async with aclosing(HttpExchange()) as http:
        found = await http.health(url, "/health", 20.0)
    assert (found and found.status) == 200


async def gate(url: str) -> None:
    with suppress(CallFailed):
        await _posted(("POST", url), ToolRoute(tool_id="x", state=RunState.RUNNING, endpoint=url), b"{", 20.0)


async def request(url: str) -> None:
    tool = builtin_tools(BuiltinOptions(http_request_allow=("127.0.0.1",), http_request_max_bytes=64 * 1024))["http_request"]
    assert isinstance(await run_alone(tool, {"url": url}), dict)


async def callback(url: str) -> None:
    poster = CallbackPoster(callback_destinations(("127.0.0.1",)), lambda: "secret", timeout_s=20)
    assert (
        await poster.post(Callback.model_validate({"task_id": "t", "event_id": "e", "type": "call.ended", "url": url, "data": {}, "at": 0}))
        == 200
    )


async def index(url: str) -> None:
    async def addresses() -> tuple[str, ...]:
        return (url,)

    async with aclosing(SimpleIndex(addresses)) as asked:
        with suppress(IndexAway):
            await asked.project("x")


async def model(url: str) -> None:
    said = ModelRequest(system="", messages=(Message(role="user", content=(Text(text="x"),)),), max_tokens=9)
    async with aclosing(AnthropicProvider(ProviderOptions("m", "k", url))) as provider:
        with pytest.raises(ModelFailure):
            await provider.ask(said, lambda _: None)


async def client(url: str) -> None:
    def ask() -> None:
        with ToolAgentHttp(url) as http, pytest.raises(WrongContent):
            http.catalog()

    await asyncio.to_thread(ask)


Reads = Callable[[str], Awaitable[None]]


async def _loaded(place: Reads, peer: Peer) -> None:
    """A model's client is loaded at the first request, and needs more memory than what is measured."""
    if place is model:
        await model(peer.url)


@pytest.mark.parametrize("place", [answer, health, gate, request])
async def test_of_an_answer_that_is_packed_once_no_more_is_unpacked_than_counts(peer: Peer, place: Reads) -> None:
    peer.first = peer.then = packed(ONCE, "gzip")
    with little_memory():
        await place(peer.url)


@pytest.mark.parametrize("place", [answer, health, gate, request, callback, index, model, client])
async def test_what_is_packed_twice_is_not_unpacked(peer: Peer, place: Reads) -> None:
    peer.first = peer.then = packed(TWICE, "gzip, gzip")
    await _loaded(place, peer)
    with little_memory():
        await place(peer.url)


@pytest.mark.parametrize("place", [index, model, client])
async def test_an_error_is_unpacked_no_further_than_it_is_told(peer: Peer, place: Reads) -> None:
    peer.first = peer.then = packed(TWICE, "gzip, gzip", status=403)
    await _loaded(place, peer)
    with little_memory():
        await place(peer.url)


@pytest.mark.parametrize("place", [request, index])
@pytest.mark.parametrize("body", [TWICE, ONCE, bytes(UNPACKED_BYTES // 4)], ids=["twice", "once", "long"])
async def test_of_a_redirect_that_is_followed_nearly_nothing_is_read(peer: Peer, place: Reads, body: bytes) -> None:
    encoding = {TWICE: "gzip, gzip", ONCE: "gzip"}.get(body, "identity")
    peer.first = packed(body, encoding, status=302, location="/there") if encoding != "identity" else _long_redirect(body)
    peer.then = packed(b"nothing", "identity", kind="text/x-none")
    with little_memory():
        await place(peer.url)
    assert peer.asked > 1


def _long_redirect(body: bytes) -> bytes:
    return f"HTTP/1.1 302 X\r\nLocation: /there\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _raw_deflate(content: bytes) -> bytes:
    raw = zlib.compressobj(wbits=-15)
    return raw.compress(content) + raw.flush()


@pytest.mark.parametrize(
    ("pack", "encoding"),
    [(gzip.compress, "gzip"), (gzip.compress, "identity, GZIP"), (zlib.compress, "deflate"), (_raw_deflate, "deflate")],
)
async def test_a_tool_that_packs_once_though_it_was_not_asked_to_is_understood(
    http: HttpExchange, peer: Peer, pack: Callable[[bytes], bytes], encoding: str
) -> None:
    said = {"text": "x" * 50_000}
    peer.first = packed(pack(json.dumps(said).encode()), encoding)
    assert await http.call(Target(peer.url, "POST", "/", {}), request_of(20.0)) == said


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"\x1b\x03", "br"), (b"no gzip", "gzip"), (gzip.compress(b"[1]")[:-9], "gzip"), (gzip.compress(b"[1]") + b"more", "gzip")],
    ids=["another packing", "none at all", "cut off", "more behind it"],
)
async def test_what_cannot_be_unpacked_is_an_output_error_and_an_error_keeps_its_status(
    http: HttpExchange, peer: Peer, body: bytes, encoding: str
) -> None:
    peer.first, peer.then = packed(body, encoding), packed(body, encoding, status=500)
    with pytest.raises(CallFailed) as failure:
        await http.call(Target(peer.url, "POST", "/", {}), request_of(20.0))
    assert failure.value.error_type is ErrorType.OUTPUT_VALIDATION_ERROR
    with pytest.raises(CallFailed) as failure:
        await http.call(Target(peer.url, "POST", "/", {}), request_of(20.0))
    assert (failure.value.error_type, failure.value.details["status_code"]) == (ErrorType.EXECUTION_ERROR, 500)


async def test_the_message_names_the_size_that_counts(http: HttpExchange, peer: Peer) -> None:
    peer.first = packed(ONCE, "gzip")
    with pytest.raises(CallFailed) as failure:
        await http.call(Target(peer.url, "POST", "/", {}), request_of(20.0))
    assert "more than 65536 bytes of JSON, counted unpacked" in failure.value.message
    assert failure.value.details == {"size": None, "limit": 65536}


@pytest.mark.parametrize("where", [b"HTTP/1.1 200 X\r\nX-Long: ", b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n1;"])
async def test_a_head_without_an_end_is_not_held(http: HttpExchange, peer: Peer, where: bytes) -> None:
    peer.first = where + b"x" * (UNPACKED_BYTES // 4)
    with little_memory(), pytest.raises(CallFailed) as failure:
        await http.call(Target(peer.url, "POST", "/", {}), request_of(20.0))
    assert failure.value.error_type is ErrorType.EXECUTION_ERROR


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 X\r\nX: ", b"HTTP/1.1 200 X\r\n\r\n"], ids=["head", "body"])
async def test_who_drips_is_given_up_in_time(http: HttpExchange, peer: Peer, head: bytes) -> None:
    peer.first, peer.then, peer.drips = head, head, True
    assert await http.health(peer.url, "/health", 0.2) is None
    with pytest.raises(CallFailed) as failure:
        await http.call(Target(peer.url, "POST", "/", {}), request_of(0.2))
    assert failure.value.error_type is ErrorType.TIMEOUT


_MAKES = {"AsyncClient", "Client", "AsyncAnthropic", "Anthropic", "DefaultAsyncHttpxClient", "DefaultHttpxClient"}
_ASKS = {"get", "post", "put", "patch", "delete", "head", "options", "request", "stream"}
_READS = {"aread", "aiter_bytes", "aiter_text", "aiter_lines", "aiter_raw", "iter_bytes", "iter_text", "iter_lines", "iter_raw"}
_OTHERS = {"aiohttp", "urllib3", "urllib.request", "http.client", "pycurl", "websockets", "boto3", "httpcore"}
_BY_HTTPX = {"httpx", "httpx2", "anthropic"}
_SPOKEN_OF = re.compile("|".join(map(re.escape, _BY_HTTPX | _OTHERS | _READS)))
"""In a file without one of these nothing can be found."""


def _is_a_clients(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _BY_HTTPX and node.attr in _MAKES | _ASKS
    )


def _makes_a_client(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=made):
            return _is_a_clients(made)
        case ast.ClassDef(bases=bases):
            return any(map(_is_a_clients, bases))
        case ast.ImportFrom(module=str(module), names=names):
            return module in _OTHERS or (module in _BY_HTTPX and bool({one.name for one in names} & (_MAKES | _ASKS)))
        case ast.Import(names=names):
            return bool({one.name for one in names} & _OTHERS)
        case _:
            return False


def _reads_an_answer(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READS


def test_nobody_else_makes_clients_or_reads_answers() -> None:
    folders = ("activities", "api", "engine", "packages", "workers", "workflows")
    sources = {path: path.read_text("utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py")}
    nodes = {str(path.relative_to(ROOT)): [*ast.walk(ast.parse(text))] for path, text in sources.items() if _SPOKEN_OF.search(text)}
    assert {path for path, of in nodes.items() if any(map(_makes_a_client, of))} == set(OWN_CLIENTS)
    assert {path for path, of in nodes.items() if any(map(_reads_an_answer, of))} == set(OWN_READERS)
