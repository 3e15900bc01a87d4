"""Tools are started for the first call, their ends are noticed, and each request is sent once."""

import asyncio
import os
import select
import signal
import time
from pathlib import Path
from typing import cast

import psutil
import pytest
from pydantic import JsonValue

from engine.network.ports import free_port
from engine.runtimes.failures import CallFailed, NoSlot, NotSent, StartFailed
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Reply, Supervisor
from tests.runtimes.conftest import Routes, entry_of, eventually, home_of, is_gone, leftovers, local_source, request_of, silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.routes import RunState
from toolagent.contracts.sources import BuiltinSource, McpSource, RemoteSource


async def call(
    supervisor: Supervisor,
    entry: ToolEntry,
    timeout_s: float = 20.0,
    *,
    only_if_running: bool = False,
    slot_timeout_s: float | None = None,
    start_timeout_s: float | None = None,
    **params: JsonValue,
) -> Reply:
    dispatch = Dispatch(entry, request_of(timeout_s, **params), slot_timeout_s=slot_timeout_s, start_timeout_s=start_timeout_s)
    return await (supervisor.call_running(dispatch) if only_if_running else supervisor.call(dispatch))


class Told:
    """Marks, in the order of their arrival."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def before_send(self) -> None:
        self.told.append("sent")

    async def after_not_sent(self) -> None:
        self.told.append("not sent")


async def pid_of(supervisor: Supervisor, entry: ToolEntry) -> int:
    await call(supervisor, entry)
    return up(supervisor, entry.manifest.tool_id)


def up(supervisor: Supervisor, tool_id: str = "versatile") -> int:
    """The pid of the sandbox that was started last, as this machine numbers it."""
    route = supervisor.route(tool_id)
    assert route is not None
    assert route.pid is not None
    return route.pid


async def test_the_first_call_starts_the_tool(supervisor: Supervisor, routes: Routes) -> None:
    assert not supervisor.is_running("versatile", "1.0.0")
    reply = await call(supervisor, entry_of(), x=1)
    route = supervisor.route("versatile")
    assert route is not None
    assert (cast("dict[str, JsonValue]", reply.output)["echo"], reply.active_source) == ({"x": 1}, 0)
    assert supervisor.is_running("versatile", "1.0.0")
    assert routes.states == [RunState.STARTING, RunState.RUNNING]
    assert (route.host, route.endpoint.partition(":")[0] if route.endpoint else "") == ("here", "unix")


async def test_twenty_first_calls_at_once_start_one_process(supervisor: Supervisor, state: Path) -> None:
    pids = await asyncio.gather(*[pid_of(supervisor, entry_of()) for _ in range(20)])
    assert len((state / "tools/versatile/home/starts").read_text().split()) == 1
    assert set(pids) == {pids[0]}


async def test_the_start_outlives_the_caller_that_asked_first(supervisor: Supervisor, state: Path) -> None:
    first = asyncio.create_task(call(supervisor, entry_of()))
    second = asyncio.create_task(call(supervisor, entry_of()))
    await eventually(lambda: bool(supervisor.route("versatile")))
    first.cancel()
    await second
    assert len((state / "tools/versatile/home/starts").read_text().split()) == 1


async def test_a_start_that_nobody_waits_for_any_more_leaves_no_process(supervisor: Supervisor, routes: Routes, state: Path) -> None:
    starts = state / "tools/versatile/home/starts"
    only = asyncio.create_task(call(supervisor, entry_of(local_source(health_path="/health"))))
    await eventually(lambda: starts.exists() and bool(starts.read_text()))
    was_starting = routes.states == [RunState.STARTING]
    only.cancel()
    await asyncio.wait([only])
    if was_starting and not supervisor.is_running("versatile", "1.0.0"):
        assert leftovers(state) == []
        assert routes.states[-1] is RunState.STOPPED
    assert await call(supervisor, entry_of())


async def test_a_crashed_tool_is_noticed_and_started_anew_by_the_next_call(supervisor: Supervisor, routes: Routes) -> None:
    before = await pid_of(supervisor, entry_of())
    os.kill(before, signal.SIGKILL)
    await eventually(lambda: routes.states[-1] is RunState.ERROR)
    assert not supervisor.is_running("versatile", "1.0.0")
    last = routes.saved[-1][0]
    assert (last.last_error, last.endpoint, last.pid) == ("ended by SIGKILL (exit code -9)", None, None)
    await eventually(lambda: len(routes.alerts) == 1)
    assert await pid_of(supervisor, entry_of()) != before


async def test_a_tool_that_ended_a_moment_ago_is_started_anew(supervisor: Supervisor) -> None:
    before = await pid_of(supervisor, entry_of())
    # Who lives in the sandbox may outlive it by a moment, and answer half of the next call.
    ending = [os.pidfd_open(one) for one in (before, *(child.pid for child in psutil.Process(before).children(recursive=True)))]
    os.kill(before, signal.SIGKILL)
    # The event loop does not turn meanwhile: the supervisor cannot have seen it.
    for one in ending:
        assert select.select([one], [], [], 10)[0]
        os.close(one)
    assert await pid_of(supervisor, entry_of()) != before


async def test_a_tool_that_ends_during_a_call_has_an_unknown_outcome(supervisor: Supervisor, routes: Routes) -> None:
    with pytest.raises(CallFailed) as caught:
        await call(supervisor, entry_of(), mode="exit")
    assert (caught.value.error_type, caught.value.outcome) == (ErrorType.EXECUTION_ERROR, "unknown")
    assert caught.value.details["tool_ended"] == "exited with code 3"
    assert "other_calls" not in caught.value.details
    assert routes.states[-1] is RunState.ERROR
    assert await pid_of(supervisor, entry_of())


async def test_calls_that_were_in_the_process_together_are_told_so(supervisor: Supervisor, state: Path) -> None:
    other = asyncio.create_task(call(supervisor, entry_of(), mode="hang"))
    await eventually((home_of(state) / "hanging").exists)
    failures = await asyncio.gather(other, call(supervisor, entry_of(), mode="exit"), return_exceptions=True)
    assert [failure.details.get("other_calls") for failure in failures if isinstance(failure, CallFailed)] == [True, True]


async def test_a_tool_that_lives_but_takes_no_connections_is_replaced(supervisor: Supervisor) -> None:
    before = await pid_of(supervisor, entry_of())
    await call(supervisor, entry_of(), mode="deafen")
    # Who connects for us takes what it cannot deliver: this one call cannot be told from one that arrived.
    with pytest.raises(CallFailed) as caught:
        await call(supervisor, entry_of())
    assert (caught.value.error_type, caught.value.outcome) == (ErrorType.EXECUTION_ERROR, "unknown")
    assert await pid_of(supervisor, entry_of()) != before
    assert is_gone(before)


async def test_the_next_source_is_tried_when_nothing_was_sent(supervisor: Supervisor, routes: Routes) -> None:
    entry = entry_of(
        McpSource(tool_name="x", url="http://127.0.0.1:1"),
        RemoteSource(remote_url=f"http://127.0.0.1:{free_port()}"),
        local_source(),
    )
    marks = Told()
    reply = await supervisor.call(Dispatch(entry, request_of(), marks))
    assert reply.active_source == 2
    assert marks.told == ["sent", "not sent", "sent"]
    assert (routes.saved[-1][0].active_source, routes.saved[-1][0].state) == (2, RunState.RUNNING)
    assert (await call(supervisor, entry)).active_source == 2


async def test_the_next_source_is_not_tried_once_a_request_was_sent(supervisor: Supervisor, state: Path) -> None:
    entry = entry_of(local_source(), local_source(health_path="/other"))
    with pytest.raises(CallFailed):
        await call(supervisor, entry, mode="exit")
    assert len((state / "tools/versatile/home/starts").read_text().split()) == 1


async def test_when_no_source_works_the_failure_tells_of_all(supervisor: Supervisor) -> None:
    with pytest.raises(NotSent) as caught:
        await call(supervisor, entry_of(local_source("broken"), McpSource(tool_name="x", url="http://127.0.0.1:1")))
    tried = cast("list[dict[str, JsonValue]]", caught.value.details["sources"])
    assert [(one["source"], one["type"]) for one in tried] == [("local", "unavailable"), ("mcp", "unavailable")]


async def test_a_tool_without_sources_has_no_executor(supervisor: Supervisor) -> None:
    entry = entry_of().model_copy(update={"sources": ()})
    with pytest.raises(NotSent) as caught:
        await call(supervisor, entry)
    assert caught.value.error_type is ErrorType.EXECUTOR_NOT_FOUND


async def test_a_request_that_cannot_be_written_does_not_cost_the_process(supervisor: Supervisor) -> None:
    entry = entry_of(local_source(endpoint_path="/run/{missing}"))
    await supervisor.start(entry, silent)
    before = supervisor.route("versatile")
    with pytest.raises(NotSent) as caught:
        await call(supervisor, entry)
    assert caught.value.error_type is ErrorType.VALIDATION_ERROR
    assert supervisor.route("versatile") == before


async def test_before_send_may_stop_the_request(supervisor: Supervisor, state: Path) -> None:
    class Refusing(Told):
        async def before_send(self) -> None:
            raise PermissionError("already sent")

    with pytest.raises(PermissionError):
        await supervisor.call(Dispatch(entry_of(), request_of(mode="hang"), Refusing()))
    assert not (state / "tools/versatile/home/hanging").exists()


async def test_only_if_running_starts_nothing(supervisor: Supervisor) -> None:
    with pytest.raises(NoSlot):
        await call(supervisor, entry_of(), only_if_running=True)
    assert supervisor.route("versatile") is None
    await supervisor.start(entry_of(), silent)
    assert await call(supervisor, entry_of(), only_if_running=True)


async def test_what_needs_no_process_is_always_ready(supervisor: Supervisor) -> None:
    builtin = entry_of(BuiltinSource(handler="echo"), tool_id="echo")
    assert supervisor.is_ready(builtin)
    assert supervisor.is_ready(entry_of(RemoteSource(remote_url="http://127.0.0.1:1")))
    assert not supervisor.is_ready(entry_of())
    assert not supervisor.is_ready(entry_of(McpSource(tool_name="x", url="http://127.0.0.1:1")))
    assert await call(supervisor, builtin, only_if_running=True, message="hello")


async def test_a_tools_own_concurrency_is_held_and_waiting_is_not_counted(supervisor: Supervisor, state: Path) -> None:
    entry, until = entry_of(concurrency=1), home_of(state) / "go"
    hanging = state / "tools/versatile/home/hanging"
    first = asyncio.create_task(call(supervisor, entry, mode="slow", until="go"))
    await eventually(hanging.exists)
    second = asyncio.create_task(call(supervisor, entry))
    with pytest.raises(NoSlot):
        await call(supervisor, entry, only_if_running=True)
    done, _ = await asyncio.wait([second], timeout=0.3)
    assert not done
    let_go = time.monotonic()
    until.touch()
    await first
    assert (await second).duration_s < time.monotonic() - let_go


async def test_stopping_what_does_not_run_is_fine(supervisor: Supervisor, routes: Routes) -> None:
    assert (await supervisor.stop("versatile")).state is RunState.STOPPED
    pid = await pid_of(supervisor, entry_of())
    assert (await supervisor.stop("versatile")).state is RunState.STOPPED
    assert is_gone(pid)
    assert (await supervisor.stop("versatile")).state is RunState.STOPPED
    assert routes.states == [RunState.STARTING, RunState.RUNNING, RunState.STOPPED]


async def test_a_tool_that_is_stopped_while_it_starts_is_not_started(supervisor: Supervisor, routes: Routes) -> None:
    starting = asyncio.create_task(call(supervisor, entry_of(local_source("mute"), tool_id="mute")))
    await eventually(lambda: bool(routes.saved))
    await supervisor.stop("mute")
    with pytest.raises(NotSent) as caught:
        await starting
    assert caught.value.error_type is ErrorType.UNAVAILABLE
    assert routes.states == [RunState.STARTING, RunState.STOPPED]


async def test_a_call_that_waits_for_a_slot_does_not_start_a_tool_again_that_was_stopped(
    supervisor: Supervisor, routes: Routes, state: Path
) -> None:
    entry = entry_of(concurrency=1)
    running = asyncio.create_task(call(supervisor, entry, mode="hang"))
    await eventually((state / "tools/versatile/home/hanging").exists)
    waiting = [asyncio.create_task(call(supervisor, entry)) for _ in range(3)]
    await asyncio.sleep(0)  # each has come as far as the slot
    await supervisor.stop("versatile")
    with pytest.raises(CallFailed) as failed:
        await running
    assert (failed.value.error_type, failed.value.details["reason"]) == (ErrorType.EXECUTION_ERROR, "stopped")
    for one in waiting:
        with pytest.raises(NotSent) as caught:
            await one
        assert (caught.value.error_type, caught.value.details) == (ErrorType.UNAVAILABLE, {"reason": "stopped"})
    assert routes.states == [RunState.STARTING, RunState.RUNNING, RunState.STOPPED]
    assert (await call(supervisor, entry)).active_source == 0  # whoever comes later may


async def test_a_tool_that_is_stopped_while_it_starts_is_not_started_from_its_next_source(supervisor: Supervisor, routes: Routes) -> None:
    entry = entry_of(local_source("mute"), local_source())
    starting = asyncio.create_task(call(supervisor, entry))
    await eventually(lambda: bool(routes.saved))
    await supervisor.stop("versatile")
    with pytest.raises(NotSent) as caught:
        await starting
    assert caught.value.details == {"reason": "stopped"}
    assert routes.states == [RunState.STARTING, RunState.STOPPED]


async def test_a_call_whose_tool_is_stopped_right_before_it_is_sent_is_taken_back(supervisor: Supervisor) -> None:
    class Stopping(Told):
        async def before_send(self) -> None:
            await supervisor.stop("echo")

    marks = Stopping()
    entry, request = entry_of(BuiltinSource(handler="echo"), tool_id="echo"), request_of(message=1)
    with pytest.raises(NotSent) as caught:
        await supervisor.call(Dispatch(entry, request, marks))
    assert (caught.value.details, marks.told) == ({"reason": "stopped"}, ["not sent"])


@pytest.mark.promise("slots-are-bounded")
async def test_a_slot_that_does_not_come_free_in_time_is_told_apart_and_nothing_is_sent(supervisor: Supervisor, state: Path) -> None:
    entry, until = entry_of(concurrency=1), home_of(state) / "go"
    hanging = state / "tools/versatile/home/hanging"
    first = asyncio.create_task(call(supervisor, entry, mode="slow", until="go", slot_timeout_s=0.0))
    await eventually(hanging.exists)
    with pytest.raises(NoSlot) as caught:
        async with asyncio.timeout(15):
            await call(supervisor, entry, mode="hang", slot_timeout_s=0.1)
    assert (caught.value.error_type, caught.value.details) == (ErrorType.UNAVAILABLE, {"reason": "no_slot"})
    assert hanging.read_text().split() == ["begun"]
    until.touch()
    await first
    assert await call(supervisor, entry, slot_timeout_s=5.0)  # who gave up took no slot


async def test_all_starts_of_a_call_have_one_time(supervisor: Supervisor, routes: Routes) -> None:
    entry = entry_of(McpSource(tool_name="x", url="http://127.0.0.1:1"), local_source("mute"), local_source())
    with pytest.raises(NotSent) as caught:
        await call(supervisor, entry, start_timeout_s=2.0)
    tried = cast("list[dict[str, JsonValue]]", caught.value.details["sources"])
    assert [(one["index"], one["type"]) for one in tried] == [(0, "unavailable"), (1, "unavailable")]
    assert routes.states == [RunState.STARTING, RunState.ERROR, RunState.STARTING, RunState.STOPPED]


async def test_a_start_that_takes_too_long_says_so_and_leaves_no_process(supervisor: Supervisor) -> None:
    with pytest.raises(StartFailed) as caught:
        await call(supervisor, entry_of(local_source("mute")), start_timeout_s=2.0)
    assert caught.value.error_type is ErrorType.UNAVAILABLE
    assert caught.value.details["timeout_s"] == 2.0
    assert str(caught.value.details["doing"]) in caught.value.message
    assert not supervisor.is_running("versatile", "1.0.0")


async def test_the_time_a_call_takes_is_no_part_of_its_start(supervisor: Supervisor, state: Path) -> None:
    until = home_of(state) / "go"
    await supervisor.start(entry_of(), silent)
    slow = asyncio.create_task(call(supervisor, entry_of(), mode="slow", until="go", start_timeout_s=1.0))
    await eventually((state / "tools/versatile/home/hanging").exists)
    done, _ = await asyncio.wait([slow], timeout=1.2)
    assert not done
    until.touch()
    assert await slow


async def test_one_callers_time_does_not_end_a_start_that_others_wait_for(supervisor: Supervisor, routes: Routes) -> None:
    patient = asyncio.create_task(call(supervisor, entry_of(local_source("mute"))))
    await eventually(lambda: bool(routes.saved))
    with pytest.raises(StartFailed):
        await call(supervisor, entry_of(local_source("mute")), start_timeout_s=0.2)
    assert not patient.done()
    assert routes.states == [RunState.STARTING]
    await supervisor.stop("versatile")
    with pytest.raises(NotSent):
        await patient


async def test_another_version_has_its_own_process_and_the_old_one_keeps_serving(supervisor: Supervisor, state: Path) -> None:
    until = home_of(state) / "go"
    old = asyncio.create_task(call(supervisor, entry_of(), mode="slow", until="go"))
    await eventually((state / "tools/versatile/home/hanging").exists)
    first = up(supervisor)
    second = await pid_of(supervisor, entry_of(version="2.0.0"))
    assert first != second
    assert not is_gone(first)
    until.touch()
    assert await old
    assert up(supervisor) == second


async def test_a_source_that_was_changed_replaces_the_process_once_its_calls_have_ended(supervisor: Supervisor, state: Path) -> None:
    until = home_of(state) / "go"
    old = asyncio.create_task(call(supervisor, entry_of(), mode="slow", until="go"))
    await eventually((state / "tools/versatile/home/hanging").exists)
    before = up(supervisor)
    new = await pid_of(supervisor, entry_of(local_source(health_path="/changed")))
    assert before != new
    until.touch()
    assert await old
    await eventually(lambda: is_gone(before))
    assert await pid_of(supervisor, entry_of(local_source(health_path="/changed"))) == new


async def test_a_start_that_fails_leaves_an_error_in_the_route(supervisor: Supervisor, routes: Routes) -> None:
    with pytest.raises(StartFailed):
        await supervisor.start(entry_of(local_source("broken"), tool_id="broken"), silent)
    assert routes.states == [RunState.STARTING, RunState.ERROR]
    assert routes.saved[-1][0].last_error
