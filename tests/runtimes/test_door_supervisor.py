"""Tools that a front door calls, and those that need a connection first."""

import asyncio
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from engine.runtimes.failures import StartFailed
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.runtimes.running.door_supervisor import DoorSupervisor
from engine.runtimes.runtime import Progress, Running, ToolRequest, Unstarted
from tests.runtimes.conftest import entry_of, eventually, silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import Contract
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import McpSource, RemoteSource

NEAR = RemoteSource(remote_url="http://127.0.0.1:1")
FAR = McpSource(tool_name="act", url="http://127.0.0.1:1/mcp")


class Connected(Unstarted):
    """A runtime with connections to its tools, which can be lost; it makes none while it is `away`."""

    def __init__(self, *, away: bool = False) -> None:
        self.away, self.starts, self.lost = away, 0, asyncio.Event()

    async def start(self, tool: ToolManifest, source: Contract, progress: Progress) -> Running:  # noqa: ARG002 - the contract of a runtime
        self.starts += 1
        if self.away:
            raise StartFailed(ErrorType.UNAVAILABLE, "It is away.")
        return Running(endpoint="far", started_at=datetime.now(UTC))

    async def call(self, running: Running, source: Contract, request: ToolRequest) -> JsonValue:  # noqa: ARG002 - the contract of a runtime
        return "done"

    async def ended(self, running: Running) -> str:  # noqa: ARG002 - the contract of a runtime
        await self.lost.wait()
        return "lost"

    async def stop(self, running: Running) -> None:  # noqa: ARG002 - the contract of a runtime
        self.lost.set()


async def test_what_needs_no_connection_is_ready_and_what_needs_one_gets_it_for_later_calls() -> None:
    far, http = Connected(), HttpExchange()
    supervisor = DoorSupervisor({"mcp": far, "remote": RemoteRuntime(http, dict[str, str]().get)}, lambda _: True)
    assert supervisor.is_ready(entry_of(NEAR))
    assert not supervisor.is_ready(entry_of(FAR))
    assert not supervisor.is_ready(entry_of(FAR))
    await eventually(lambda: supervisor.is_ready(entry_of(FAR)))
    assert far.starts == 1
    await supervisor.close()
    assert far.lost.is_set()
    await http.aclose()


async def test_what_is_not_taken_is_not_connected_to() -> None:
    far = Connected()
    supervisor = DoorSupervisor({"mcp": far}, lambda _: False)
    assert not supervisor.is_ready(entry_of(FAR))
    await supervisor.close()
    assert far.starts == 0


async def test_a_server_that_is_away_is_left_in_peace_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    far = Connected(away=True)
    supervisor = DoorSupervisor({"mcp": far}, lambda _: True)
    assert not supervisor.is_ready(entry_of(FAR))
    await eventually(lambda: far.starts == 1)
    for _ in range(5):
        await asyncio.sleep(0)
        assert not supervisor.is_ready(entry_of(FAR))
    assert far.starts == 1
    monkeypatch.setattr("engine.runtimes.running.door_supervisor._AGAIN_S", 0.0)
    far.away = False
    await eventually(lambda: supervisor.is_ready(entry_of(FAR)))
    await supervisor.close()


async def test_a_server_that_would_have_to_be_started_is_refused() -> None:
    http = HttpExchange()
    runtime = RemoteMcpRuntime(5.0, 5.0, http, dict[str, str]().get)
    with pytest.raises(StartFailed) as refusal:
        await runtime.start(ToolManifest(tool_id="near", name="Near"), McpSource(tool_name="act", command=("python",)), silent)
    assert refusal.value.error_type is ErrorType.EXECUTOR_NOT_FOUND
    await http.aclose()
