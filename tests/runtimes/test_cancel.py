"""A cancellation closes the connection; the process is ended only if it goes on working, and serves no other call."""

import asyncio
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Reply, Supervisor
from tests.runtimes.conftest import entry_of, eventually, inside, is_gone, leftovers, request_of
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import BuiltinSource


def begin(supervisor: Supervisor, entry: ToolEntry, **params: JsonValue) -> asyncio.Task[Reply]:
    return asyncio.create_task(supervisor.call(Dispatch(entry, request_of(60.0, **params))))


async def cancel(task: asyncio.Task[Reply]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_tool_that_stops_working_is_left_running(supervisor: Supervisor, state: Path) -> None:
    call = begin(supervisor, entry_of(), mode="hang")
    await eventually((state / "tools/versatile/home/hanging").exists)
    await cancel(call)
    assert await supervisor.settle_cancelled(entry_of()) == "tool_idle"
    await eventually((state / "tools/versatile/home/hung_up").exists)
    assert supervisor.is_running("versatile", "1.0.0")


@pytest.mark.promise("cancel-spares-others")
async def test_a_tool_that_goes_on_is_ended_and_started_anew_by_the_next_call(supervisor: Supervisor, state: Path) -> None:
    call = begin(supervisor, entry_of(), mode="hang", stubborn=True)
    await eventually((state / "tools/versatile/home/hanging").exists)
    await cancel(call)
    route = supervisor.route("versatile")
    assert route is not None
    working = inside(route.pid)
    assert await supervisor.settle_cancelled(entry_of()) == "tool_stopped"
    assert all(map(is_gone, working))
    assert leftovers(state) == []
    await begin(supervisor, entry_of())
    assert len((state / "tools/versatile/home/starts").read_text().split()) == 2


@pytest.mark.promise("cancel-spares-others")
async def test_a_tool_that_serves_others_is_left_alone(supervisor: Supervisor, state: Path) -> None:
    until = state / "tools/versatile/home/go"
    other = begin(supervisor, entry_of(), mode="slow", until="go")
    stubborn = begin(supervisor, entry_of(), mode="hang", stubborn=True)
    hanging = state / "tools/versatile/home/hanging"
    await eventually(lambda: hanging.exists() and len(hanging.read_text().split()) == 2)
    await cancel(stubborn)
    assert await supervisor.settle_cancelled(entry_of()) == "tool_left_busy"
    until.touch()
    assert await other


async def test_without_a_process_nothing_is_left_to_do(supervisor: Supervisor) -> None:
    assert await supervisor.settle_cancelled(entry_of(BuiltinSource(handler="echo"))) == "connection_closed"
