"""The runtime of built-in tools."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runtime import BuiltinRuntime
from engine.runtimes.builtin.tool import BuiltinTool, ToolContext
from engine.runtimes.failures import CallFailed, NotSent, StartFailed
from engine.runtimes.runtime import Running, Runtime, ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import BuiltinSource

TOOLS = builtin_tools(BuiltinOptions())
RUNNING = Running(endpoint="builtin:echo", started_at=datetime.now(UTC))


class Endless:
    """Never answers; `ended` is set when it is cancelled."""

    def __init__(self, scope: SideEffectScope) -> None:
        self.manifest = ToolManifest(tool_id="endless", name="Endless", side_effect_scope=scope)
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    starts_processes = False

    async def invoke(self, params: dict[str, JsonValue], context: ToolContext) -> JsonValue:  # noqa: ARG002 - as BuiltinTool has it
        self.begun.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.ended.set()


def request(params: dict[str, JsonValue], timeout_s: float = 5) -> ToolRequest:
    return ToolRequest(call_id="call-12345678", params=params, timeout_s=timeout_s, output_dir=Path())


async def call(tool: BuiltinTool, params: dict[str, JsonValue], timeout_s: float = 5) -> JsonValue:
    runtime: Runtime[BuiltinSource] = BuiltinRuntime({tool.manifest.tool_id: tool})
    return await runtime.call(RUNNING, BuiltinSource(handler=tool.manifest.tool_id), request(params, timeout_s))


async def test_a_tool_starts_at_once_and_says_so() -> None:
    runtime: Runtime[BuiltinSource] = BuiltinRuntime(TOOLS)
    source, told = BuiltinSource(handler="echo"), list[str]()
    running = await runtime.start(TOOLS["echo"].manifest, source, told.append)
    assert (running.endpoint, running.pid, running.port, len(told)) == ("builtin:echo", None, None, 1)
    assert await runtime.is_alive(running)
    assert await runtime.is_idle(running, source)
    await runtime.stop(running)
    await runtime.stop(running)


async def test_an_unknown_handler_does_not_start() -> None:
    with pytest.raises(StartFailed) as failure:
        await BuiltinRuntime(TOOLS).start(TOOLS["echo"].manifest, BuiltinSource(handler="nothing"), lambda _: None)
    assert failure.value.error_type is ErrorType.EXECUTOR_NOT_FOUND


async def test_an_unknown_handler_is_sent_nothing() -> None:
    with pytest.raises(NotSent) as failure:
        await BuiltinRuntime(TOOLS).call(RUNNING, BuiltinSource(handler="nothing"), request({}))
    assert failure.value.error_type is ErrorType.EXECUTOR_NOT_FOUND


@pytest.mark.parametrize("message", [None, True, 0, -1.5, "早", [[]], {"a": {"b": [1, "2", None]}}])
async def test_echo_returns_any_json_unchanged(message: JsonValue) -> None:
    assert await call(TOOLS["echo"], {"message": message}) == {"message": message}


async def test_every_wrong_parameter_is_listed_with_its_path() -> None:
    with pytest.raises(CallFailed) as failure:
        await call(TOOLS["http_request"], {"url": "ftp://x", "headers": {"A": 1}, "extra": 1})
    assert failure.value.error_type is ErrorType.VALIDATION_ERROR
    errors = failure.value.details["errors"]
    assert isinstance(errors, list)
    assert [error["path"] for error in errors if isinstance(error, dict)] == ["$.url", "$.headers.A", "$.extra"]


@pytest.mark.parametrize(("scope", "outcome"), [(SideEffectScope.NONE, "failed"), (SideEffectScope.NETWORK, "unknown")])
async def test_a_tool_that_does_not_answer_is_ended_in_time(scope: SideEffectScope, outcome: str) -> None:
    tool = Endless(scope)
    with pytest.raises(CallFailed) as failure:
        await call(tool, {}, timeout_s=0.05)
    assert (failure.value.error_type, failure.value.outcome, tool.ended.is_set()) == (ErrorType.TIMEOUT, outcome, True)


async def test_a_cancelled_call_is_cancelled_in_the_tool() -> None:
    tool = Endless(SideEffectScope.NONE)
    task = asyncio.create_task(call(tool, {}))
    await asyncio.wait_for(tool.begun.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tool.ended.is_set()
