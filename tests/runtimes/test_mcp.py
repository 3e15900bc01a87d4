"""MCP servers of this machine, also hostile ones."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import psutil
import pytest
from pydantic import JsonValue

from engine.runtimes.docker.serving.sandbox_level import ContainerLevel
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.failures import CallFailed, NotSent, RuntimeFailure, StartFailed
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.process.box import Level
from engine.runtimes.process.ownership import Owner
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Running, ToolRequest, Vitals
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.levels.rlimits import RLimits
from engine.runtimes.sandbox.sandbox import Sandbox
from tests.runtimes.conftest import entry_of, eventually, home_of, inside, request_of, silent
from tests.runtimes.test_mcp_dialogue import Heard
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxPolicy
from toolagent.contracts.sources import McpSource
from workers.host.sandbox import identities

TOOL = ToolManifest(tool_id="versatile", name="Versatile")


def mcp_source(behaviour: str = "", **more: JsonValue) -> McpSource:
    told: dict[str, JsonValue] = {"tool_name": "act", "host_dir": "mcp_versatile", "environment": {"BEHAVIOUR": behaviour}}
    return McpSource.model_validate({**told, **more})


def runtime_of(parts: RuntimeParts, start_timeout_s: float = 20.0) -> McpRuntime:
    settings = replace(parts.local, start_timeout_s=start_timeout_s)
    return McpRuntime(settings, parts.launcher, parts.sandboxing, parts.http, parts.secrets, parts.projects)


@asynccontextmanager
async def up(parts: RuntimeParts, source: McpSource | None = None) -> AsyncGenerator[tuple[McpRuntime, Running]]:
    runtime = runtime_of(parts)
    running = await runtime.start(TOOL, source or mcp_source(), silent)
    try:
        yield runtime, running
    finally:
        await runtime.stop(running)


async def ask(runtime: McpRuntime, running: Running, mode: str | None = None, **params: JsonValue) -> JsonValue:
    told: dict[str, JsonValue] = {**params, **({"mode": mode} if mode else {})}
    return await runtime.call(running, mcp_source(), request_of(20.0, **told))


async def failing(runtime: McpRuntime, running: Running, mode: str, **params: JsonValue) -> RuntimeFailure:
    with pytest.raises(RuntimeFailure) as caught:
        await ask(runtime, running, mode, **params)
    return caught.value


async def not_starting(parts: RuntimeParts, source: McpSource, start_timeout_s: float = 20.0) -> StartFailed:
    with pytest.raises(StartFailed) as caught:
        await runtime_of(parts, start_timeout_s).start(TOOL, source, silent)
    return caught.value


async def test_structured_content_is_the_output(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        output = cast("dict[str, JsonValue]", await ask(runtime, running, x=[1, "二"]))
    assert output["echo"] == {"x": [1, "二"]}


async def test_text_stays_text_and_what_is_none_stands_beside_it(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        assert await ask(runtime, running, "text") == {"text": "[1, 2]"}
        image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        assert await ask(runtime, running, "image") == {"text": "one\ntwo", "content": [image]}


async def test_a_failure_that_the_tool_tells_has_its_text(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        failure = await failing(runtime, running, "fail")
    assert (failure.error_type, failure.message) == (ErrorType.EXECUTION_ERROR, "as you asked")
    assert isinstance(failure, CallFailed)
    assert failure.outcome == "failed"


async def test_several_calls_go_over_one_connection_at_once(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        began = time.monotonic()
        await asyncio.gather(*[ask(runtime, running, "wait", seconds=0.5) for _ in range(8)])
    assert time.monotonic() - began < 3


async def test_progress_is_told_under_the_call_id(parts: RuntimeParts) -> None:
    told: list[str] = []
    request = ToolRequest("call-12345678", {"mode": "progress"}, 20.0, Path("/tmp"), told.append)  # noqa: S108 - never written to
    async with up(parts) as (runtime, running):
        await runtime.call(running, mcp_source(), request)
        meta = cast("dict[str, JsonValue]", await ask(runtime, running, "meta"))
    assert told == ["step 0 (0%)", "step 1 (50%)", "step 2 (100%)"]
    assert (meta["progressToken"], meta["tool-agent/call-id"]) == ("call-12345678", "call-12345678")


async def test_what_a_server_asks_is_declined_and_a_ping_answered(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        said = cast("dict[str, str]", await ask(runtime, running, "ask"))
    answers = {answer["id"]: answer for answer in json.loads(said["text"])}
    refused = [answers[f"mine-{method}"]["error"]["code"] for method in ("sampling/createMessage", "roots/list")]
    assert (refused, answers["mine-elicitation/create"]["result"]) == ([-32601] * 2, {"action": "decline"})
    assert answers["mine-ping"]["result"] == {}


async def test_a_server_that_asks_without_end_is_answered_and_goes_on(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        assert await ask(runtime, running, "flood") == {"text": "after it"}


async def test_what_a_server_says_at_length_besides_its_answer_is_left_out(parts: RuntimeParts, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    for bound in ("_MOST_SAID", "_MOST_ASKED"):
        monkeypatch.setattr(f"engine.runtimes.mcp.sieve.{bound}", 2000)
    async with up(parts) as (runtime, running):
        request = ToolRequest("call-12345678", {"mode": "huge", "bytes": 2000}, 20.0, Path("/tmp"), dialogue=heard)  # noqa: S108 - never written to
        assert await runtime.call(running, mcp_source(), request) == {"text": "after it"}
    assert (heard.logged, heard.asked) == ([("info", "small")], [])


async def test_parameters_that_do_not_fit_a_pipe_arrive_whole(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        outputs = await asyncio.gather(*[ask(runtime, running, "size", pad="二" * 1_000_000) for _ in range(3)])
    assert outputs == [{"size": 1_000_000}] * 3


async def test_variables_are_given_and_secrets_resolved_and_masked(parts: RuntimeParts) -> None:
    source = mcp_source(environment={"PLAIN": "so", "API_KEY": "secret:KEY"})
    async with up(parts, source) as (runtime, running):
        seen = cast("dict[str, str]", await ask(runtime, running, "environment"))
        arguments = " ".join(" ".join(psutil.Process(pid).cmdline()) for pid in (cast("int", running.pid), *inside(running.pid)))
    assert (seen["PLAIN"], seen["API_KEY"], seen["HOME"]) == ("so", "***", "/home/tool")
    assert "s3cret-value" not in arguments


async def test_a_secret_that_is_not_set_is_named(parts: RuntimeParts) -> None:
    failure = await not_starting(parts, mcp_source(environment={"API_KEY": "secret:NONE"}))
    assert (failure.error_type, failure.details["setting"]) == (ErrorType.DEPENDENCY_ERROR, "TOOL_AGENT_SECRET_NONE")


async def test_a_command_is_looked_for_in_the_environment_of_its_project(parts: RuntimeParts) -> None:
    async with up(parts, mcp_source(command=["python", "main.py"])) as (runtime, running):
        output = cast("dict[str, JsonValue]", await ask(runtime, running, x=1))
    assert output["echo"] == {"x": 1}


async def test_a_command_alone_is_a_program_of_the_machine(parts: RuntimeParts) -> None:
    program = (Path(__file__).parents[1] / "tool_projects/mcp_versatile/main.py").read_text()
    source = McpSource(tool_name="act", command=("python3", "-c", program))
    async with up(parts, source) as (runtime, running):
        assert await ask(runtime, running, "text") == {"text": "[1, 2]"}


async def test_a_source_that_names_no_server_is_refused(parts: RuntimeParts) -> None:
    failure = await not_starting(parts, McpSource(tool_name="act"))
    assert failure.error_type is ErrorType.VALIDATION_ERROR


async def test_a_server_that_never_answers_does_not_come_up(parts: RuntimeParts) -> None:
    failure = await not_starting(parts, mcp_source("mute"), 1.0)
    assert (failure.error_type, failure.details["waited_s"]) == (ErrorType.UNAVAILABLE, 1.0)


async def test_a_server_that_exits_at_once_says_why(parts: RuntimeParts) -> None:
    failure = await not_starting(parts, mcp_source("exits"))
    assert (failure.details["exit_code"], failure.details["stderr"]) == (4, "no configuration")


async def test_a_server_of_no_known_version_does_not_come_up(parts: RuntimeParts) -> None:
    assert (await not_starting(parts, mcp_source("lies"))).error_type is ErrorType.UNAVAILABLE


async def test_a_server_that_writes_nothing_but_garbage_does_not_come_up(parts: RuntimeParts) -> None:
    began = time.monotonic()
    await not_starting(parts, mcp_source("torrent"), 2.0)
    assert time.monotonic() - began < 8
    logs = parts.local.state / "tools/versatile"
    assert sum(file.stat().st_size for file in logs.glob("stdout.log*")) <= 2 * 1024 * 1024


async def test_lines_that_are_no_messages_go_to_the_log(parts: RuntimeParts) -> None:
    async with up(parts, mcp_source("garbage")) as (runtime, running):
        assert await ask(runtime, running, "chatter", lines=5000) == {"text": "after it"}
        log = (parts.local.state / "tools/versatile/stdout.log").read_text()
    assert log.startswith("Welcome to my server!\nline 0 that is no message\n")


async def test_a_line_of_a_hundred_megabytes_is_skipped(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        before = psutil.Process().memory_info().rss
        assert await ask(runtime, running, "line", bytes=100_000_000) == {"text": "after it"}
        assert psutil.Process().memory_info().rss - before < 64 * 1024 * 1024


@pytest.mark.parametrize("size", [100_000, 30_000_000])
async def test_an_answer_that_is_too_large_fails_at_once_and_the_server_goes_on(parts: RuntimeParts, size: int) -> None:
    async with up(parts) as (runtime, running):
        failure = await failing(runtime, running, "large", bytes=size)
        assert await ask(runtime, running, "text") == {"text": "[1, 2]"}
    assert isinstance(failure, CallFailed)
    assert (failure.error_type, failure.outcome) == (ErrorType.OUTPUT_VALIDATION_ERROR, "failed")
    assert "TOOL_AGENT_MAX_RESULT_BYTES" in failure.message


async def test_an_answer_that_is_too_deep_is_not_read(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        assert (await failing(runtime, running, "deep")).error_type is ErrorType.OUTPUT_VALIDATION_ERROR


async def test_a_server_that_dies_in_mid_call_leaves_its_outcome_unknown_and_the_next_call_starts_it(
    supervisor: Supervisor, parts: RuntimeParts
) -> None:
    entry = entry_of(mcp_source())
    with pytest.raises(CallFailed) as caught:
        await supervisor.call(Dispatch(entry, request_of(20.0, mode="die")))
    failure = caught.value
    assert (failure.error_type, failure.outcome) == (ErrorType.EXECUTION_ERROR, "unknown")
    assert (failure.details["stderr"], failure.details["tool_ended"]) == ("my last words", "exited with code 3")
    assert (home_of(parts.local.state) / "calls").read_text() == "\n"
    reply = await supervisor.call(Dispatch(entry, request_of(20.0, mode="text")))
    assert reply.output == {"text": "[1, 2]"}


async def test_a_server_that_closes_its_stdout_is_ended_and_started_anew(supervisor: Supervisor, parts: RuntimeParts) -> None:
    entry = entry_of(mcp_source())
    with pytest.raises(CallFailed) as caught:
        await supervisor.call(Dispatch(entry, request_of(1.0, mode="close")))
    assert (caught.value.error_type, caught.value.outcome) == (ErrorType.TIMEOUT, "unknown")
    reply = await supervisor.call(Dispatch(entry, request_of(20.0, mode="text")))
    assert reply.output == {"text": "[1, 2]"}


async def test_a_cancelled_call_is_told_to_the_server_which_stays(supervisor: Supervisor, parts: RuntimeParts) -> None:
    entry, home = entry_of(mcp_source()), home_of(parts.local.state)
    call = asyncio.ensure_future(supervisor.call(Dispatch(entry, request_of(20.0, mode="hang"))))
    await eventually((home / "hanging").exists)
    call.cancel()
    await asyncio.wait([call])
    assert await supervisor.settle_cancelled(entry) == "tool_idle"
    await eventually((home / "hung_up").exists)
    assert str(json.loads((home / "hung_up").read_text())["requestId"]) == (home / "hanging").read_text().strip()


async def test_tools_of_one_server_share_its_process(supervisor: Supervisor) -> None:
    source = mcp_source(process="group")
    outputs = [
        await supervisor.call(Dispatch(entry, request_of(20.0)))
        for entry in (entry_of(source), entry_of(source.model_copy(update={"tool_name": "other"}), tool_id="another"))
    ]
    assert len({cast("dict[str, int]", reply.output)["pid"] for reply in outputs}) == 1
    assert supervisor.is_running("another", "1.0.0")


async def test_a_call_of_what_has_ended_is_not_sent(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        psutil.Process(running.pid).kill()
        await runtime.ended(running)
        with pytest.raises(NotSent):
            await ask(runtime, running)


async def test_a_listing_has_names_and_schemas_and_no_hints(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        listing = await runtime.list_tools(running)
    (tool,) = listing.tools
    assert (tool.name, tool.description, tool.input_schema, tool.output_schema) == ("act", "Acts.", {"type": "object"}, {"type": "object"})
    assert listing.faults == []


async def test_a_key_that_a_server_lists_is_masked(parts: RuntimeParts) -> None:
    listing = await runtime_of(parts).listed(TOOL, mcp_source(environment={"BEHAVIOUR": "tells", "API_KEY": "secret:KEY"}), silent)
    schema = {"type": "object", "description": "***"}
    assert [(tool.name, tool.description, tool.input_schema) for tool in listing.tools] == [
        (f"act_{at}", "Acts with ***.", schema) for at in range(2)
    ]


@pytest.mark.parametrize(("behaviour", "tools", "faults"), [("many", 1000, 1), ("circle", 2, 1), ("pages", 0, 1), ("odd", 1, 5)])
async def test_a_listing_is_bounded_and_its_faults_are_data(parts: RuntimeParts, behaviour: str, tools: int, faults: int) -> None:
    listing = await runtime_of(parts).listed(TOOL, mcp_source(behaviour), silent)
    assert (len(listing.tools), len(listing.faults)) == (tools, faults)


def _rlimits(state: Path, owner: Owner) -> Level:
    return RLimits(state / "rlimits", owner, Cgroups(owner), None)


def _container(state: Path, owner: Owner) -> Level:
    return ContainerLevel(state / "sandbox" / "etc", Engine(), owner, identities())


@pytest.mark.parametrize("level", [_rlimits, _container])
async def test_a_server_is_spoken_to_in_the_other_levels_of_the_sandbox(parts: RuntimeParts, level: Callable[[Path, Owner], Level]) -> None:
    state = parts.local.state
    sandbox = Sandbox(level(state, Owner.of_this_process(state)), SandboxPolicy())
    parts = replace(parts, sandboxing=replace(parts.sandboxing, sandbox=sandbox))
    async with up(parts, mcp_source(environment={"API_KEY": "secret:KEY"})) as (runtime, running):
        assert await ask(runtime, running, "text") == {"text": "[1, 2]"}
        assert await ask(runtime, running, "chatter", lines=100) == {"text": "after it"}
        assert cast("dict[str, str]", await ask(runtime, running, "environment"))["API_KEY"] == "***"
        failure = await failing(runtime, running, "die")
    assert isinstance(failure, CallFailed)
    assert (failure.outcome, failure.details["stderr"]) == ("unknown", "my last words")


async def test_a_server_is_well_while_it_answers_a_ping(parts: RuntimeParts) -> None:
    async with up(parts) as (runtime, running):
        assert await runtime.vitals(running, mcp_source(), 5.0) == Vitals(is_well=True)
        frozen = [psutil.Process(pid) for pid in inside(running.pid)]
        for process in frozen:
            process.suspend()
        found = await runtime.vitals(running, mcp_source(), 0.5)
        for process in frozen:
            process.resume()
        assert found == Vitals(is_well=False, said="it did not answer a ping within 0.5 s")
        assert (await runtime.vitals(running, mcp_source(), 5.0)).is_well


@pytest.mark.parametrize("behaviour", ["", "strict"])
async def test_which_revision_a_program_speaks_is_found_out_even_if_it_ends_at_the_question(parts: RuntimeParts, behaviour: str) -> None:
    listing = await runtime_of(parts).listed(TOOL, mcp_source(behaviour), silent)
    assert (listing.revision, [tool.name for tool in listing.tools]) == ("2025-11-25", ["act"])
