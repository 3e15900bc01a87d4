"""Messages and questions of MCP servers during a call, by each transport and in each revision."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio
from mcp_types import CLIENT_CAPABILITIES_META_KEY
from pydantic import JsonValue

from engine.network.ports import free_port
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.local.boxed_runs import LocalSettings
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.mcp.wire import stamped
from engine.runtimes.runtime import Asked, Running, ToolRequest, declined
from tests.blocks import blocks_of
from tests.parts import launching, sandboxing
from tests.programs import start_program
from tests.runtimes.conftest import silent
from toolagent.contracts.call_messages import ANSWER_OF, Elicitation, Listener, LogLevel
from toolagent.contracts.manifest import FileAccess, SecurityContext, ToolManifest
from toolagent.contracts.sandbox import SandboxPolicy
from toolagent.contracts.sources import McpSource

FIXTURE = Path(__file__).parents[1] / "mcp/fixture/server.py"
SEEN = (sys.prefix, sys.base_prefix, str(FIXTURE.parent))
"""What the fixture needs of this machine: it is started with the environment of these tests."""

TOOL = ToolManifest(tool_id="fixture", name="Fixture", security_context=SecurityContext(file_access=FileAccess(allow_read=SEEN)))
ALL = Listener(progress=True, log_level=LogLevel.INFO, answers=("elicitation", "sampling", "roots"))
ANSWERS: dict[str, dict[str, JsonValue]] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada", "response": "yes", "color": "red", "ok": True}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"},
    "roots/list": {"roots": [{"uri": "file:///work"}]},
}


@dataclass
class Heard:
    """A dialogue with a caller that answers all questions that it declares."""

    listens: Listener = ALL
    progressed: list[tuple[float, float | None, str | None]] = field(default_factory=list[tuple[float, float | None, str | None]])
    logged: list[tuple[str, JsonValue]] = field(default_factory=list[tuple[str, JsonValue]])
    asked: list[Asked] = field(default_factory=list[Asked])
    rounds: list[int] = field(default_factory=list[int])
    shown: JsonValue = None

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.progressed.append((done, total, message))

    def log(self, level: LogLevel, logger: str | None, data: JsonValue) -> None:  # noqa: ARG002 - this fixture's has no name
        self.logged.append((level.value, data))

    def show(self, content: JsonValue) -> None:
        self.shown = content

    async def ask(self, asked: Sequence[Asked]) -> list[dict[str, JsonValue]]:
        self.asked += asked
        self.rounds.append(len(asked))
        return [self._answer(one) for one in asked]

    def _answer(self, asked: Asked) -> dict[str, JsonValue]:
        answers = ANSWER_OF[asked.question] in self.listens.answers
        return {"result": ANSWERS[asked.question]} if answers else declined(asked.question)


@dataclass(frozen=True)
class Server:
    runtime: McpRuntime
    running: Running
    source: McpSource
    revision: str

    async def call(self, name: str, heard: Heard, call_id: str = "call-12345678", **params: JsonValue) -> JsonValue:
        request = ToolRequest(call_id, params, 20.0, Path("/tmp"), dialogue=heard)  # noqa: S108 - never written to
        return await self.runtime.call(self.running, self.source.model_copy(update={"tool_name": name}), request)


pytestmark = pytest.mark.asyncio(loop_scope="module")

WAYS = ("stdio 2025-11-25", "stdio 2026-07-28", "http 2025-11-25", "http 2026-07-28")


@pytest_asyncio.fixture(params=WAYS, scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> AsyncGenerator[Server]:
    """One server for all tests of a transport, because its start takes longer than they do."""
    async with fixture_server(str(request.param), tmp_path_factory.mktemp("dialogue")) as (runtime, source):
        running = await runtime.start(TOOL, source, silent)
        yield Server(runtime, running, source, source.revision or "")
        await runtime.stop(running)


@asynccontextmanager
async def fixture_server(way_and_revision: str, folder: Path) -> AsyncGenerator[tuple[McpRuntime, McpSource]]:
    """A runtime in which the fixture sees the environment of these tests, and its source; over HTTP it is running."""
    (folder / "state").mkdir()
    with launching(folder / "state") as launcher:
        settings = LocalSettings(data=folder, state=folder / "state", calls=folder / "calls", start_timeout_s=20.0, stop_grace_s=2.0)
        boxes = sandboxing(folder / "state", launcher, folder / "environments", SandboxPolicy(read=SEEN))
        async with aclosing(HttpExchange()) as http, _fixture_source(way_and_revision, http) as source:
            yield McpRuntime(settings, launcher, boxes, http, dict[str, str]().get), source


@asynccontextmanager
async def _fixture_source(way_and_revision: str, http: HttpExchange) -> AsyncGenerator[McpSource]:
    way, revision = way_and_revision.split()
    if way == "stdio":
        yield McpSource.model_validate({"tool_name": "x", "command": [sys.executable, str(FIXTURE)], "revision": revision})
        return
    port = free_port()
    program = await start_program(sys.executable, str(FIXTURE), "--port", str(port))
    try:
        async with asyncio.timeout(60):
            while await http.health(f"http://127.0.0.1:{port}", "/", 1.0) is None:  # noqa: ASYNC110 - another process gets ready
                await asyncio.sleep(0.05)
        yield McpSource.model_validate({"tool_name": "x", "url": f"http://127.0.0.1:{port}/mcp", "revision": revision})
    finally:
        program.kill()
        await program.wait()


async def test_progress_and_logs_are_told_in_order(server: Server) -> None:
    heard = Heard()
    await server.call("test_tool_with_progress", heard)
    await server.call("test_tool_with_logging", heard)
    assert heard.progressed == [(done, 100, f"Completed step {done} of 100") for done in (0, 50, 100)]
    assert heard.logged == [("info", f"Tool {done}") for done in ("execution started", "processing data", "execution completed")]


async def test_pictures_sounds_and_resources_come_back_in_their_order(server: Server) -> None:
    heard = Heard()
    output = cast("dict[str, JsonValue]", await server.call("test_multiple_content_types", heard))
    shown = cast("dict[str, list[JsonValue]]", heard.shown)
    blocks = blocks_of(shown["content"], output)
    assert [(block["type"], block.get("mimeType")) for block in blocks] == [("text", None), ("image", "image/png"), ("resource", None)]
    sound = cast("dict[str, JsonValue]", await server.call("test_audio_content", heard))
    assert cast("list[dict[str, JsonValue]]", sound["content"])[0]["mimeType"] == "audio/wav"


async def test_each_kind_of_question_is_asked_and_its_answer_used(server: Server) -> None:
    heard = Heard()
    assert await server.call("test_elicitation", heard, message="Which?") == {
        "text": 'User response: action=accept, content={"name": "Ada", "response": "yes", "color": "red", "ok": true}'
    }
    assert await server.call("test_sampling", heard, prompt="Capital?") == {"text": "LLM response: Paris"}
    assert await server.call("test_input_required_result_list_roots", heard) == {"text": "file:///work"}
    assert [one.question for one in heard.asked] == ["elicitation/create", "sampling/createMessage", "roots/list"]
    assert heard.asked[0].params["message"] == "Which?"


async def test_questions_of_several_rounds_are_asked_in_turn(server: Server) -> None:
    heard = Heard()
    assert await server.call("test_input_required_result_multi_round", heard) == {"text": "Ada likes red."}
    assert await server.call("test_input_required_result_multiple_inputs", heard) == {"text": "Paris, Ada of file:///work"}
    assert heard.rounds == ([1, 1, 3] if server.revision == "2026-07-28" else [1] * 5)
    keys = [one.key for one in heard.asked]
    assert keys == (["step1", "step2", "user_name", "greeting", "client_roots"] if server.revision == "2026-07-28" else [None] * 5)


async def test_who_answers_nothing_is_asked_nothing_or_declines(server: Server) -> None:
    heard = Heard(Listener())
    if server.revision == "2026-07-28":
        with pytest.raises(CallFailed) as caught:
            await server.call("test_missing_capability", heard)
        assert caught.value.details["code"] == -32021
        assert await server.call("test_input_required_result_capabilities", heard) == {"text": "Nobody can be asked."}
    else:
        output = cast("dict[str, str]", await server.call("test_elicitation", heard, message="Which?"))
        assert "action=decline" in output["text"]


async def test_calls_at_once_are_each_told_their_own(server: Server) -> None:
    heard = [Heard() for _ in range(4)]
    await asyncio.gather(*(server.call("test_tool_with_progress", one, f"call-{number:08}") for number, one in enumerate(heard)))
    assert [len(one.progressed) for one in heard] == [3] * 4
    asking = [Heard() for _ in range(3)]
    answers = await asyncio.gather(*(server.call("test_elicitation", one, f"call-{n:08}", message=str(n)) for n, one in enumerate(asking)))
    if "url" in server.source.model_fields_set or server.revision == "2026-07-28":
        assert [[asked.params["message"] for asked in one.asked] for one in asking] == [["0"], ["1"], ["2"]]
    else:
        # Over stdio nothing says whose a question is: none is shown to another caller.
        told = [cast("dict[str, str]", answer)["text"] for answer in answers]
        assert all("action=decline" in text or "action=accept" in text for text in told)
        assert all(asked.params["message"] == str(n) for n, one in enumerate(asking) for asked in one.asked)


@pytest.mark.parametrize("modes", [("form",), ("url",), ("form", "url")])
async def test_a_server_is_told_the_modes_of_elicitation_that_the_caller_takes(modes: tuple[Elicitation, ...]) -> None:
    listens = Listener(answers=("elicitation", "roots"), elicits=modes)
    params, _ = stamped("tools/call", {}, "2026-07-28", listens, {})
    meta = cast("dict[str, JsonValue]", params["_meta"])
    assert meta[CLIENT_CAPABILITIES_META_KEY] == {"elicitation": {mode: {} for mode in modes}, "roots": {}}
