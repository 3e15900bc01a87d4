"""Remote MCP servers over HTTP."""

import asyncio
import gzip
import json
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

import pytest
from pydantic import JsonValue

from engine.network.ports import free_port
from engine.runtimes.failures import CallFailed, NotSent, RuntimeFailure, StartFailed
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.mcp.codes import NOT_SENT
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Running
from tests.programs import start_program
from tests.runtimes.conftest import Routes, entry_of, request_of, silent
from tests.runtimes.test_mcp_dialogue import Heard
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import McpSource

TOOL = ToolManifest(tool_id="far", name="Far")
Document = dict[str, JsonValue]


STRANGE = (
    (b"message", b"[1]"),
    (b"message", b'{"level": "info", "data": "heard", "_meta": "x"}'),
    (b"message", b'{"level": "info", "data": [NaN]}'),
    (b"progress", b'{"progressToken": "call-12345678", "progress": 1e999}'),
    (b"progress", b'{"progressToken": "call-12345678", "progress": %s}' % (b"9" * 400)),
)


@dataclass
class Far:
    """A server whose session has this number; `by_events` says how it answers, `seen` has the requests.

    `version` is what it speaks, if not what was asked for. A call that hangs sets `held` and waits for `freed`.
    """

    url: str = ""
    session: int = 1
    version: JsonValue = None
    held: threading.Event = field(default_factory=threading.Event)
    freed: threading.Event = field(default_factory=threading.Event)
    by_events: bool = False
    seen: list[tuple[str, Document]] = field(default_factory=list[tuple[str, Document]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def calls(self) -> int:
        return sum(method == "tools/call" for method, _ in self.seen)

    def source(self, **more: JsonValue) -> McpSource:
        return McpSource.model_validate({"tool_name": "act", "url": self.url, **more})


@pytest.fixture
def far() -> Generator[Far]:  # noqa: C901 - one arm a behaviour
    far = Far()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked: Document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            far.seen.append((str(asked["method"]), asked))
            far.headers.append({name.lower(): value for name, value in self.headers.items()})
            sent = self.headers.get("Mcp-Session-Id")
            if sent is not None and sent != str(far.session):
                self.say(404, b"")
            elif "id" not in asked:
                self.say(202, b"")
            elif asked["method"] == "initialize":
                version = far.version or cast("Document", asked["params"])["protocolVersion"]
                about: Document = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "far", "version": "1"}}
                self.result(asked, about, {"Mcp-Session-Id": str(far.session)})
            elif asked["method"] == "ping":
                self.result(asked, {})
            elif asked["method"] == "tools/list":
                self.result(asked, {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]})
            else:
                self.act(asked, cast("Document", cast("Document", asked["params"]).get("arguments") or {}))

        def act(self, asked: Document, params: Document) -> None:  # noqa: C901 - one arm a behaviour
            match params.get("mode"):
                case "bytes":
                    self.text(asked, "x" * cast("int", params["bytes"]))
                case "gateway":
                    self.say(502, b"")
                case "redirect":
                    self.say(307, b"", {"Location": "/elsewhere"})
                case "packed":
                    self.say(200, gzip.compress(b"x" * 10_000_000), {"Content-Type": "application/json", "Content-Encoding": "gzip"})
                case "cut":
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b"{")
                    self.close_connection = True
                case "garbage":
                    self.say(200, b'{"%s"]' % str(params.get("pin")).encode(), {"Content-Type": "application/json"})
                case "hang":
                    far.held.set()
                    far.freed.wait(600)
                    self.text(asked, "done")
                case "strange":
                    self.say(200, b"".join(self.strange(asked)), {"Content-Type": "text/event-stream"})
                case "infinite":
                    self.raw(asked, b"1e999")
                case "values":
                    self.raw(asked, b"[" + b"[]," * 300_000 + b"[]]")
                case "deep":
                    self.raw(asked, b"[" * 500 + b"]" * 500)
                case "refuse":
                    error: Document = {"code": NOT_SENT, "message": f"bad {params['pin']}"}
                    told = {"jsonrpc": "2.0", "id": asked["id"], "error": error}
                    self.say(200, json.dumps(told).encode(), {"Content-Type": "application/json"})
                case "misform":
                    self.result(asked, {"content": [{"type": params["pin"]}]})
                case "key":
                    self.text(asked, f"Your key is {self.headers['Authorization']}.")
                case _:
                    self.text(asked, "done")

        def raw(self, asked: Document, value: bytes) -> None:
            told = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [], "structuredContent": {"a": %s}}}' % (asked["id"], value)
            if far.by_events:
                self.say(200, b"event: message\ndata: " + told + b"\n\n", {"Content-Type": "text/event-stream"})
            else:
                self.say(200, told, {"Content-Type": "application/json"})

        def strange(self, asked: Document) -> Generator[bytes]:
            """Invalid notifications, then the answer."""
            for method, params in STRANGE:
                yield b'event: message\ndata: {"jsonrpc": "2.0", "method": "notifications/%s", "params": %s}\n\n' % (method, params)
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"content": [{"type": "text", "text": "done"}]}}
            yield b"event: message\ndata: " + json.dumps(answer).encode() + b"\n\n"

        def text(self, asked: Document, said: str) -> None:
            self.result(asked, {"content": [{"type": "text", "text": said}]})

        def result(self, asked: Document, value: Document, headers: dict[str, str] | None = None) -> None:
            told = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": value}).encode()
            if far.by_events:
                self.say(200, b"event: message\ndata: " + told + b"\n\n", {"Content-Type": "text/event-stream", **(headers or {})})
            else:
                self.say(200, told, {"Content-Type": "application/json", **(headers or {})})

        def do_GET(self) -> None:
            self.say(405, b"")

        do_DELETE = do_GET  # noqa: N815 - as the library has them

        def say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        far.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield far
        server.shutdown()
        thread.join()


def runtime_of(parts: RuntimeParts, http: HttpExchange | None = None) -> McpRuntime:
    return McpRuntime(parts.local, parts.launcher, parts.sandboxing, http or parts.http, parts.secrets)


@asynccontextmanager
async def up(parts: RuntimeParts, source: McpSource) -> AsyncGenerator[tuple[McpRuntime, Running]]:
    runtime = runtime_of(parts)
    running = await runtime.start(TOOL, source, silent)
    try:
        yield runtime, running
    finally:
        await runtime.stop(running)


async def failing(parts: RuntimeParts, far: Far, mode: str, **params: JsonValue) -> RuntimeFailure:
    """The failure of a call on a connection that goes on afterwards."""
    async with up(parts, far.source()) as (runtime, running):
        with pytest.raises(RuntimeFailure) as caught:
            await runtime.call(running, far.source(), request_of(60.0, mode=mode, **params))
        assert await runtime.call(running, far.source(), request_of(60.0)) == {"text": "done"}
    return caught.value


@pytest.mark.parametrize("by_events", [False, True])
async def test_a_call_goes_over_a_session(parts: RuntimeParts, far: Far, *, by_events: bool) -> None:
    far.by_events = by_events
    async with up(parts, far.source()) as (runtime, running):
        answers = await asyncio.gather(*[runtime.call(running, far.source(), request_of(60.0)) for _ in range(5)])
        listing = await runtime.list_tools(running)
    assert answers == [{"text": "done"}] * 5
    assert [tool.name for tool in listing.tools] == ["act"]
    assert [method for method, _ in far.seen].count("initialize") == 1


async def test_notifications_that_are_none_are_left_out_and_fail_no_call(parts: RuntimeParts, far: Far) -> None:
    heard = Heard()
    async with up(parts, far.source()) as (runtime, running):
        request = replace(request_of(60.0, mode="strange"), dialogue=heard)
        assert await runtime.call(running, far.source(), request) == {"text": "done"}
    assert (heard.logged, heard.progressed) == ([("info", "heard")], [])


async def test_the_key_is_sent_in_a_header_and_masked_where_it_comes_back(parts: RuntimeParts, far: Far) -> None:
    source = far.source(remote_api_key="secret:KEY")
    async with up(parts, source) as (runtime, running):
        assert await runtime.call(running, source, request_of(60.0, mode="key")) == {"text": "Your key is Bearer ***."}
    assert {headers["authorization"] for headers in far.headers} == {"Bearer s3cret-value"}
    assert "s3cret-value" not in running.endpoint


async def test_a_key_that_is_not_set_is_named(parts: RuntimeParts, far: Far) -> None:
    with pytest.raises(NotSent) as caught:
        await runtime_of(parts).start(TOOL, far.source(remote_api_key="secret:NONE"), silent)
    assert (caught.value.error_type, far.seen) == (ErrorType.DEPENDENCY_ERROR, [])


@pytest.mark.parametrize("by_events", [False, True])
@pytest.mark.parametrize("size", [100_000, 20_000_000])
async def test_an_answer_that_is_too_large_fails(parts: RuntimeParts, far: Far, size: int, *, by_events: bool) -> None:
    far.by_events = by_events
    failure = await failing(parts, far, "bytes", bytes=size)
    assert isinstance(failure, CallFailed)
    assert (failure.error_type, failure.outcome) == (ErrorType.OUTPUT_VALIDATION_ERROR, "failed")


@pytest.mark.parametrize(
    ("mode", "error_type", "outcome"),
    [
        ("gateway", ErrorType.EXECUTION_ERROR, "unknown"),
        ("cut", ErrorType.EXECUTION_ERROR, "unknown"),
        ("redirect", ErrorType.EXECUTION_ERROR, "failed"),
        ("packed", ErrorType.OUTPUT_VALIDATION_ERROR, "failed"),
        ("garbage", ErrorType.OUTPUT_VALIDATION_ERROR, "failed"),
    ],
)
async def test_what_goes_wrong_fails_the_call_alone_and_it_is_not_sent_again(
    parts: RuntimeParts, far: Far, mode: str, error_type: ErrorType, outcome: str
) -> None:
    failure = await failing(parts, far, mode)
    assert isinstance(failure, CallFailed)
    assert (failure.error_type, failure.outcome) == (error_type, outcome)
    assert far.calls() == 2


@pytest.mark.parametrize("mode", ["misform", "garbage"])
async def test_a_result_of_another_form_is_told_without_its_values(parts: RuntimeParts, far: Far, mode: str) -> None:
    failure = await failing(parts, far, mode, pin="sesame" * 20)
    assert failure.error_type is ErrorType.OUTPUT_VALIDATION_ERROR
    assert "sesame" not in failure.message


async def test_a_greeting_of_another_form_is_told_without_its_values(parts: RuntimeParts, far: Far) -> None:
    far.version = ["sesame" * 20]
    with pytest.raises(StartFailed) as caught:
        await runtime_of(parts).start(TOOL, far.source(), silent)
    assert caught.value.message.endswith("protocolVersion: Input should be a valid string")


async def test_a_secret_that_a_refusal_repeats_is_not_in_the_state_of_the_tool(supervisor: Supervisor, routes: Routes, far: Far) -> None:
    entry = entry_of(far.source())
    manifest = entry.manifest.model_copy(update={"input_schema": {"properties": {"pin": {"writeOnly": True}}}})
    with pytest.raises(NotSent):
        await supervisor.call(Dispatch(entry.model_copy(update={"manifest": manifest}), request_of(60.0, mode="refuse", pin="hunter2")))
    assert {route.last_error for route, _ in routes.saved if route.last_error} == {"bad ***"}


@pytest.mark.parametrize("by_events", [False, True])
@pytest.mark.parametrize("mode", ["infinite", "values", "deep"])
async def test_an_answer_that_is_too_much_is_not_taken(parts: RuntimeParts, far: Far, mode: str, *, by_events: bool) -> None:
    far.by_events = by_events
    failure = await failing(parts, far, mode)
    assert failure.error_type is ErrorType.OUTPUT_VALIDATION_ERROR


async def test_after_a_time_out_a_server_that_answers_keeps_its_session(parts: RuntimeParts, far: Far) -> None:
    async with up(parts, far.source()) as (runtime, running):
        with pytest.raises(CallFailed) as caught:
            await runtime.call(running, far.source(), request_of(0.5, mode="hang"))
        assert (caught.value.error_type, caught.value.outcome) == (ErrorType.TIMEOUT, "unknown")
        assert await runtime.call(running, far.source(), request_of(60.0)) == {"text": "done"}
    assert [method for method, _ in far.seen if method == "notifications/cancelled"] == ["notifications/cancelled"]


async def test_a_session_that_the_server_forgot_is_made_anew(supervisor: Supervisor, far: Far) -> None:
    entry = entry_of(far.source())
    await supervisor.call(Dispatch(entry, request_of(60.0)))
    far.session = 2
    reply = await supervisor.call(Dispatch(entry, request_of(60.0)))
    assert (reply.output, [method for method, _ in far.seen].count("initialize")) == ({"text": "done"}, 2)


async def test_a_session_that_was_forgotten_keeps_no_later_call_waiting(supervisor: Supervisor, far: Far) -> None:
    entry = entry_of(far.source())
    await supervisor.call(Dispatch(entry, request_of(60.0)))
    far.session = 2
    with pytest.raises(NotSent):
        await supervisor.call_running(Dispatch(entry, request_of(60.0)))
    async with asyncio.timeout(20):
        reply = await supervisor.call(Dispatch(entry, request_of(60.0)))
    assert (reply.output, [method for method, _ in far.seen].count("initialize")) == ({"text": "done"}, 2)


async def test_a_running_call_is_answered_though_its_session_was_forgotten_which_then_ends(parts: RuntimeParts, far: Far) -> None:
    async with up(parts, far.source()) as (runtime, running):
        running_call = asyncio.create_task(runtime.call(running, far.source(), request_of(60.0, mode="hang")))
        assert await asyncio.to_thread(far.held.wait, 20)
        far.session = 2
        with pytest.raises(NotSent):
            await runtime.call(running, far.source(), request_of(60.0))
        far.freed.set()
        assert await running_call == {"text": "done"}
        async with asyncio.timeout(20):
            await runtime.ended(running)


async def test_a_server_that_is_not_there_is_not_sent_to(parts: RuntimeParts) -> None:
    with pytest.raises(StartFailed) as caught:
        await runtime_of(parts).start(TOOL, McpSource(tool_name="act", url=f"http://127.0.0.1:{free_port()}/mcp"), silent)
    assert caught.value.error_type is ErrorType.UNAVAILABLE


@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
@pytest.mark.parametrize(("is_named", "reached"), [(False, False), (True, True)])
async def test_only_public_servers_are_asked_but_for_those_the_policy_names(
    parts: RuntimeParts, far: Far, transport: str, *, is_named: bool, reached: bool
) -> None:
    async def to_this_machine(host: str, port: int) -> list[str]:
        return await asyncio.sleep(0, ["127.0.0.1"])

    host = far.url.replace("127.0.0.1", "rebound.test")
    named = (host.removeprefix("http://").removesuffix("/mcp"),) if is_named else ()
    http = HttpExchange(public=PublicServers(named, to_this_machine))
    runtime, source = runtime_of(parts, http), far.source(url=host, only_public=True, transport=transport)
    if reached and transport == "streamable_http":
        running = await runtime.start(TOOL, source, silent)
        assert far.headers[0]["host"] == host.split("/")[2]
        await runtime.stop(running)
        return
    with pytest.raises(StartFailed):
        await runtime.start(TOOL, source, silent)
    assert far.seen == []


SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("real")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

server.run(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]))
"""


@pytest.mark.parametrize(("transport", "spoken", "path"), [("streamable_http", "streamable-http", "/mcp"), ("sse", "sse", "/sse")])
async def test_servers_of_the_official_sdk_answer_over_both_transports(parts: RuntimeParts, transport: str, spoken: str, path: str) -> None:
    port = free_port()
    real = await start_program(sys.executable, "-c", SERVER, spoken, str(port), env={"PATH": "/usr/bin:/bin"})
    source = McpSource.model_validate({"tool_name": "add", "url": f"http://127.0.0.1:{port}{path}", "transport": transport})
    try:
        async with asyncio.timeout(20):
            while await parts.http.health(f"http://127.0.0.1:{port}", "/", 1.0) is None:  # noqa: ASYNC110 - another process gets ready
                await asyncio.sleep(0.05)
        async with up(parts, source) as (runtime, running):
            assert await runtime.call(running, source, request_of(60.0, a=2, b=3)) == {"result": 5}
    finally:
        real.kill()
        await real.wait()
    with pytest.raises(StartFailed):
        await runtime_of(replace(parts)).start(TOOL, source, silent)
