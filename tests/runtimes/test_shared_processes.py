"""Tools that name one process share it: it starts for the first, ends with the last, and all see its state."""

import asyncio
import os
import signal
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from engine.calls.file_parameters import CallFolder
from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Reply, Supervisor
from engine.runtimes.runtime import ToolRequest
from tests.runtimes.conftest import entry_of, eventually, is_gone, leftovers, local_source, request_of, silent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SecurityContext, ToolManifest
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent_service.calls.shared_processes import place_of_calls

HOME = Path("tools/group.shared/home")


def member(name: str, version: str = "1.0.0", **more: int | str) -> ToolEntry:
    return entry_of(local_source("versatile", process="group", **more), tool_id=f"group_{name}", version=version)


ONE, TWO = member("one"), member("two")


def begin(supervisor: Supervisor, entry: ToolEntry, **params: JsonValue) -> asyncio.Task[Reply]:
    return asyncio.create_task(supervisor.call(Dispatch(entry, request_of(60.0, **params))))


def route_of(supervisor: Supervisor, entry: ToolEntry) -> ToolRoute:
    route = supervisor.route(entry.manifest.tool_id)
    assert route is not None
    return route


async def up(supervisor: Supervisor, entry: ToolEntry) -> int:
    pid = (await supervisor.start(entry, silent)).pid
    assert pid is not None
    return pid


def starts(state: Path) -> int:
    return len((state / HOME / "starts").read_text().split())


async def working(state: Path, calls: int = 1) -> None:
    file = state / HOME / "hanging"
    await eventually(lambda: file.exists() and len(file.read_text().split()) == calls)


async def test_first_calls_of_several_tools_at_once_start_one_process(supervisor: Supervisor, state: Path) -> None:
    entries = [member(f"n{number}", endpoint_path=f"/run?{number}") for number in range(5)]
    await asyncio.gather(*[begin(supervisor, entry, x=1) for entry in entries for _ in range(4)])
    routes = [route_of(supervisor, entry) for entry in entries]
    assert starts(state) == 1
    assert {(route.state, route.pid, route.endpoint) for route in routes} == {(RunState.RUNNING, routes[0].pid, routes[0].endpoint)}
    assert [folder.name for folder in (state / "tools").iterdir()] == ["group.shared"]
    environment = cast("dict[str, JsonValue]", (await begin(supervisor, entries[1], mode="environment")).output)
    assert environment["TOOL_AGENT_TOOL_ID"] == "group"


async def test_a_tool_that_is_stopped_leaves_the_process_to_the_others(supervisor: Supervisor, state: Path) -> None:
    assert await up(supervisor, ONE) == (pid := await up(supervisor, TWO))
    serving = begin(supervisor, TWO, mode="slow", until="go")
    hanging = begin(supervisor, ONE, mode="slow", until="never")
    await working(state, 2)
    assert (await supervisor.stop("group_one")).state is RunState.STOPPED
    with pytest.raises(CallFailed) as caught:
        await hanging
    assert caught.value.outcome == "unknown"
    assert (route_of(supervisor, TWO).state, is_gone(pid)) == (RunState.RUNNING, False)
    (state / HOME / "go").touch()
    assert await serving
    assert await up(supervisor, ONE) == pid


async def test_the_process_ends_with_the_last_tool(supervisor: Supervisor, state: Path) -> None:
    pid = await up(supervisor, ONE)
    await up(supervisor, TWO)
    await supervisor.stop("group_two")
    await supervisor.stop("group_two")
    assert not is_gone(pid)
    await supervisor.stop("group_one")
    assert is_gone(pid)
    assert leftovers(state) == []
    assert await up(supervisor, TWO) != pid


async def test_stopping_all_at_once_ends_the_process(supervisor: Supervisor, state: Path) -> None:
    await asyncio.gather(up(supervisor, ONE), up(supervisor, TWO))
    await asyncio.gather(supervisor.stop("group_one"), supervisor.stop("group_two"))
    assert leftovers(state) == []


async def test_a_crash_is_seen_by_all_and_the_next_call_of_any_starts_one_for_all(supervisor: Supervisor, state: Path) -> None:
    before = await up(supervisor, ONE)
    await up(supervisor, TWO)
    os.kill(before, signal.SIGKILL)
    await eventually(lambda: [route_of(supervisor, entry).state for entry in (ONE, TWO)] == [RunState.ERROR] * 2)
    assert {route_of(supervisor, entry).last_error for entry in (ONE, TWO)} == {"ended by SIGKILL (exit code -9)"}
    after = await asyncio.gather(up(supervisor, TWO), up(supervisor, ONE))
    assert (after[0], after[0] != before, starts(state)) == (after[1], True, 2)


async def test_a_crash_during_a_call_says_how_it_ended(supervisor: Supervisor) -> None:
    await up(supervisor, TWO)
    with pytest.raises(CallFailed) as caught:
        await begin(supervisor, ONE, mode="exit")
    assert (caught.value.outcome, caught.value.details["tool_ended"]) == ("unknown", "exited with code 3")
    assert await begin(supervisor, TWO)


async def test_a_process_that_takes_no_connections_is_replaced_for_all(supervisor: Supervisor) -> None:
    before = await up(supervisor, ONE)
    await up(supervisor, TWO)
    await begin(supervisor, ONE, mode="deafen")
    with pytest.raises(CallFailed):
        await begin(supervisor, TWO)
    await begin(supervisor, ONE)
    await begin(supervisor, TWO)
    assert (route_of(supervisor, ONE).pid, is_gone(before)) == (route_of(supervisor, TWO).pid, True)


@pytest.mark.promise("cancel-spares-others")
async def test_what_goes_on_with_a_cancelled_call_is_spared_while_it_serves_another_tool(supervisor: Supervisor, state: Path) -> None:
    other, stubborn = begin(supervisor, TWO, mode="slow", until="go"), begin(supervisor, ONE, mode="hang", stubborn=True)
    await working(state, 2)
    stubborn.cancel()
    await asyncio.wait([stubborn])
    assert await supervisor.settle_cancelled(ONE) == "tool_left_busy"
    (state / HOME / "go").touch()
    assert await other


async def test_what_goes_on_with_a_cancelled_call_and_serves_nobody_is_ended_for_all(supervisor: Supervisor, state: Path) -> None:
    before = await up(supervisor, TWO)
    stubborn = begin(supervisor, ONE, mode="hang", stubborn=True)
    await working(state)
    stubborn.cancel()
    await asyncio.wait([stubborn])
    assert await supervisor.settle_cancelled(ONE) == "tool_stopped"
    await eventually(lambda: route_of(supervisor, TWO).state is RunState.STOPPED)
    assert route_of(supervisor, TWO).last_error == route_of(supervisor, ONE).last_error == "It did not stop working on a cancelled call."
    assert leftovers(state) == []
    assert await up(supervisor, TWO) != before


async def test_a_start_outlives_the_tool_that_asked_first_and_not_the_last_that_waits(supervisor: Supervisor, state: Path) -> None:
    first, second = begin(supervisor, ONE), begin(supervisor, TWO)
    await eventually(lambda: all(supervisor.route(entry.manifest.tool_id) for entry in (ONE, TWO)))
    await supervisor.stop("group_one")
    with pytest.raises(NotSent):
        await first
    assert await second
    assert starts(state) == 1
    await supervisor.stop("group_two")
    waiting = [begin(supervisor, entry) for entry in (ONE, TWO)]
    await eventually(lambda: [route_of(supervisor, entry).state for entry in (ONE, TWO)] == [RunState.STARTING] * 2)
    await asyncio.gather(supervisor.stop("group_one"), supervisor.stop("group_two"))
    assert [type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)] == [NotSent, NotSent]
    assert leftovers(state) == []


async def test_who_has_another_source_has_another_process_and_the_old_one_ends_with_its_last_tool(
    supervisor: Supervisor, state: Path
) -> None:
    old = await up(supervisor, ONE)
    await up(supervisor, TWO)
    new = await up(supervisor, member("one", health_path="/ready"))
    assert (new != old, is_gone(old)) == (True, False)
    assert await up(supervisor, member("two", health_path="/ready")) == new
    await eventually(lambda: is_gone(old))
    assert starts(state) == 2


async def test_another_version_of_files_that_may_have_changed_does_not_share(supervisor: Supervisor) -> None:
    assert await up(supervisor, member("two", "2.0.0")) != await up(supervisor, ONE)


async def test_who_asks_for_other_rights_shares_nothing_but_the_name(supervisor: Supervisor) -> None:
    manifest = TWO.manifest.model_copy(update={"security_context": SecurityContext(environment=("TZ",))})
    assert await up(supervisor, TWO.model_copy(update={"manifest": manifest})) != await up(supervisor, ONE)


async def test_the_files_of_all_their_calls_are_seen_and_no_others(supervisor: Supervisor, state: Path) -> None:
    await up(supervisor, ONE)
    filed: ToolManifest = TWO.manifest.model_copy(update={"input_schema": {"properties": {"f": {"type": "string", "format": "file-path"}}}})
    two, calls = TWO.model_copy(update={"manifest": filed}), state / "calls"
    alone = entry_of(tool_id="group").model_copy(update={"manifest": filed.model_copy(update={"tool_id": "group"})})
    async with CallFolder(calls, "call-1", filed, place_of_calls(two)) as folder, CallFolder(calls, "call-1", alone.manifest) as other:
        wanted = [str(one.outputs / "made") for one in (folder, other)]
        request = ToolRequest("call-12345678", {"mode": "write", "paths": [*wanted]}, 20.0, folder.outputs)
        reply = await supervisor.call(Dispatch(two, request))
        written = cast("dict[str, str]", reply.output)
        assert [written[file] == "done" for file in wanted] == [True, False]
        file = await asyncio.to_thread(folder.open, "made")
        assert file is not None
        file.close()
