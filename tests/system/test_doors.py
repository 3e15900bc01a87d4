"""Two front doors behind one port, on PostgreSQL: keys, cancellations and accepted calls hold across them, whichever is killed."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Collection, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil
import pytest
from temporalio.client import WorkflowExecutionStatus

from tests.machine import lacking
from tests.postgres import PostgresServer, postgres_database
from tests.system.cluster import Cluster, running_cluster
from tests.system.doors import PROCESSES, House
from tests.system.far_tools import MANY, FarServer, far_catalog, far_server
from tests.system.leftovers import is_alive
from tests.system.service_process import run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.http import Health
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent_service.calls.lanes import lane_id
from workers.temporal.connection import connect

pytestmark = pytest.mark.timeout(300)

_LEASE_S = 4


@pytest.fixture(scope="module")
def far() -> Generator[FarServer]:
    with far_server() as far:
        yield far


@pytest.fixture(scope="module")
def cluster(
    postgres: PostgresServer, temporal_address: str, far: FarServer, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Cluster]:
    folder = tmp_path_factory.mktemp("doors")
    settings = {"TEMPORAL_ADDRESS": temporal_address, "CONTENT_STORE": "database", "LANES": "all", "SHUTDOWN_GRACE_S": "5"}
    settings |= {"HOST_HEARTBEAT_S": "1", "HOST_LEASE_S": str(_LEASE_S)}
    with postgres_database(postgres) as url, running_cluster(folder, DATABASE_URL=url, **settings) as cluster:
        worker = cluster.member("worker", "host", far_catalog(folder / "data", far.url))
        worker.start()
        worker.wait_until_ready()
        yield cluster


@pytest.fixture(scope="module")
def shared(cluster: Cluster, far: FarServer, temporal_address: str) -> Generator[House]:
    parent = cluster.member(f"api --processes {PROCESSES}", "doors")
    parent.start()
    parent.wait_until_ready()
    cluster.enter(parent)
    house = House(cluster, parent, far, temporal_address)
    yield house
    house.close()


@pytest.fixture
def house(shared: House) -> House:
    shared.wait_until_whole()
    return shared


@dataclass(frozen=True, slots=True)
class OwnHouse:
    """The processes of doors, and their lanes, at the beginning."""

    house: House
    doors: list[int]
    lanes: set[str]


@pytest.fixture
def own(house: House) -> Generator[OwnHouse]:
    """A parent with doors of its own, for a test that ends it. Its lanes have begun."""
    before = house.lanes().keys()
    parent = house.cluster.member(f"api --processes {PROCESSES}", "own")
    parent.start()
    parent.wait_until_ready()
    own = House(house.cluster, parent, house.far, house.temporal_address)
    lanes = wait_until(lambda: found if len(found := own.lanes().keys() - before) == PROCESSES else None, "its lanes are listed")
    for http in own.pair():
        assert run_tool(http, "echo", {"message": "begin"})[1].metadata["way"] == "lane"
    yield OwnHouse(own, own.doors(), set(lanes))
    own.close()


@pytest.fixture
def beside() -> Generator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def _held(far: FarServer, line: str) -> dict[str, str | bool]:
    assert line not in far.begun
    return {"line": line, "held": True}


def _wait_for(house: House, line: str) -> None:
    wait_until(lambda: house.far.begun[line], f"the tool is asked: {line}")


def test_each_door_makes_calls_in_its_own_lane_and_is_no_host(house: House) -> None:
    ways = list[object]()
    for http in house.pair():
        for tool, params in (("echo", {"message": "hello"}), (house.acting(), {"line": "acts"}), (house.asking(), {"line": "asks"})):
            status, result = run_tool(http, tool, params)
            assert (status, result.status) == (200, "success"), result
            ways.append(result.metadata["way"])
        run_tool(http, "far_mcp", {})  # has the door connect

        def by_lane(http: httpx.Client = http) -> bool:
            return run_tool(http, "far_mcp", {})[1].metadata["way"] == "lane"

        wait_until(by_lane, "the server of an MCP tool is connected to, and its calls take the lane")
        health = Health.model_validate_json(http.get("/health").content)
        assert health.lane is not None
        assert health.lane.calls >= 4
    assert ways == ["lane"] * 3 * PROCESSES
    wait_until(lambda: all(lane.figures.calls for lane in house.lanes().values()), "both lanes say at either door what they did")
    assert {lane.host for lane in house.lanes().values()} == {None}
    assert len(house.cluster.hosts()) == 1
    # What starts a process is made where there is a sandbox, or said to be missing there: never by a door.
    _, script = run_tool(house.cluster.http, "execute_script", {"language": "python", "code": "print(1)"})
    assert script.metadata.get("way") != "lane"


@pytest.mark.promise("a-key-is-one-call", "lanes-make-nothing-twice")
def test_one_key_at_two_doors_at_once_is_one_call(house: House, beside: ThreadPoolExecutor) -> None:
    one, other = house.pair()
    tool = house.acting()
    for number in range(5):
        line, start = f"one key {number}", threading.Barrier(2)

        def call(http: httpx.Client, line: str = line, start: threading.Barrier = start) -> ToolResult:
            start.wait(10)
            return run_tool(http, tool, {"line": line}, line)[1]

        first, again = [future.result(60) for future in [beside.submit(call, http) for http in (one, other)]]
        assert (first.status, first) == ("success", again)
        assert house.far.begun[line] == 1


def test_a_slow_call_is_joined_at_the_other_door(house: House, beside: ThreadPoolExecutor) -> None:
    one, other = house.pair()
    tool = house.acting()
    slow: list[Future[tuple[int, ToolResult]]] = [beside.submit(run_tool, one, tool, _held(house.far, "slow"), "slow")]
    _wait_for(house, "slow")
    slow.append(beside.submit(run_tool, other, tool, {"line": "slow", "held": True}, "slow"))
    quick = run_tool(one, "echo", {"message": "beside"})[1]
    house.far.released.add("slow")
    first, again = [future.result(60)[1] for future in slow]
    assert (quick.status, first.metadata["way"], first) == ("success", "lane", again)
    assert house.far.begun["slow"] == 1


@pytest.mark.promise("temporal-is-the-queue")
def test_a_call_that_finds_no_slot_at_its_door_is_made_by_a_host(house: House, beside: ThreadPoolExecutor) -> None:
    (one, again), _ = house.clients(2)
    first = beside.submit(run_tool, one, "far_single", _held(house.far, "first"))
    _wait_for(house, "first")
    _, second = run_tool(again, "far_single", {"line": "second"})
    house.far.released.add("first")
    (host,) = house.cluster.hosts()
    assert (second.status, second.metadata["way"], second.metadata["host"]) == ("success", "workflow", host)
    assert (first.result(60)[1].metadata["way"], first.result()[1].metadata["host"]) == ("lane", "")


@pytest.mark.parametrize("has_moved", [False, True])
def test_a_cancel_at_one_door_reaches_the_call_in_the_lane_of_the_other(
    house: House, beside: ThreadPoolExecutor, *, has_moved: bool
) -> None:
    one, other = house.pair()
    for number in range(3):
        key = f"cancelled {has_moved} {number}"
        call_id = call_id_for_key(None, key)
        running = beside.submit(run_tool, one, house.acting(), _held(house.far, key), key)
        _wait_for(house, key)
        if has_moved:
            wait_until(lambda call_id=call_id: other.get(f"/tasks/{call_id}").is_success, "the call is known at the other door")
            wait_until(lambda key=key: _has_workflow(house, key), "the call has moved")
        assert other.post(f"/tasks/{call_id}/cancel").is_success
        wait_until(lambda key=key: house.far.cut[key], "the connection to the tool is closed")
        _, result = running.result(60)
        assert result.error is not None
        details = result.error.details
        assert (result.error_type, isinstance(details, dict) and details["outcome"]) == (ErrorType.CANCELLED, "unknown"), result
        assert house.far.begun[key] == 1


@pytest.mark.promise("accepted-means-ended", "never-twice")
@pytest.mark.parametrize("has_moved", [False, pytest.param(True, marks=pytest.mark.long)])
def test_when_a_door_is_killed_its_calls_end_its_sibling_goes_on_and_another_takes_its_place(
    house: House, beside: ThreadPoolExecutor, *, has_moved: bool
) -> None:
    """Moved calls first wait for the heartbeat of the door, and then for a worker that reads the queue of the door."""
    tools = acting, asking = house.acting(), house.asking()
    before, (killed, _), (mine, (other, _)) = house.lanes(), house.doors(), house.clients(2)
    lost = list[Future[tuple[int, ToolResult]]]()
    for tool, one in zip(tools, mine, strict=True):
        if tool == asking and not has_moved:
            house.far.look = psutil.Process(killed).kill
        lost.append(beside.submit(run_tool, one, tool, _held(house.far, tool), f"killed {tool}"))
        _wait_for(house, tool)
    house.far.look = lambda: None
    if has_moved:
        for tool in tools:
            wait_until(lambda tool=tool: _has_workflow(house, f"killed {tool}"), "the call has moved")
        psutil.Process(killed).kill()
    for call in lost:
        with pytest.raises(httpx.HTTPError):
            call.result(60)
    house.far.released.update(tools)
    for number in range(20):
        assert run_tool(other, "echo", {"message": number})[1].metadata["way"] == "lane"

    acted, asked = (house.cluster.ended_task(call_id_for_key(None, f"killed {tool}"), 60) for tool in tools)
    assert acted.result is not None
    assert acted.result.error is not None
    assert (acted.result.error.type, acted.result.error.details) == (ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})
    assert asked.status is TaskState.COMPLETED
    assert [house.far.begun[tool] for tool in (acting, asking)] == [1, 2]
    house.wait_until_whole()
    assert killed not in house.doors()
    assert psutil.Process(house.parent.pid).num_threads() == 1, "doors are forks of it"
    (gone,) = before.keys() - house.lanes().keys()
    wait_until(lambda: _statuses(house, [gone]) == {WorkflowExecutionStatus.TERMINATED}, "the killed door's lane is ended")
    assert all(run_tool(http, "echo", {"message": "new"})[1].metadata["way"] == "lane" for http in house.pair())


@pytest.mark.promise("accepted-means-ended", "never-twice")
def test_a_door_that_is_frozen_past_its_lease_settles_nothing_of_what_was_taken_from_it(house: House, beside: ThreadPoolExecutor) -> None:
    """Its caller gets the recorded result, and it becomes a door again."""
    tool, (frozen, _), (one, other) = house.acting(), house.doors(), house.pair()
    door, call_id = psutil.Process(frozen), call_id_for_key(None, f"frozen {tool}")
    house.far.look = door.suspend
    try:
        asked = beside.submit(run_tool, one, tool, _held(house.far, tool), f"frozen {tool}")
        _wait_for(house, tool)
        house.far.look = lambda: None

        def ended() -> ToolResult | None:
            answer = other.get(f"/tasks/{call_id}")
            return TaskView.model_validate_json(answer.content).result if answer.is_success else None

        told = wait_until(ended, "another door ends the call", 60.0)
        house.far.released.add(tool)
        wait_until(lambda: tool in house.far.answered, "the tool has answered a door that is frozen")
    finally:
        door.resume()
    assert told.error is not None
    assert (told.error.type, told.error.details) == (ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})
    assert asked.result(60)[1] == told
    assert ended() == told
    assert house.far.begun[tool] == 1
    house.wait_until_whole()
    assert frozen in house.doors()
    wait_until(lambda: run_tool(one, "echo", {"message": "thawed"})[1].metadata["way"] == "lane", "its lane takes calls again")


@pytest.mark.long
@pytest.mark.promise("accepted-means-ended", "never-twice")
@pytest.mark.parametrize("jump", ["-1h", "+1h"])
def test_when_the_clock_of_a_door_jumps_its_calls_are_its_own_until_it_is_gone(
    house: House, beside: ThreadPoolExecutor, tmp_path: Path, jump: str
) -> None:
    faketime = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if faketime is None:
        lacking("faketime is not installed (Debian: apt-get install faketime)")
    others, clock, go_on = house.lanes().keys(), tmp_path / "clock", f"before {jump}"
    clock.write_text("+0")
    door = house.cluster.member("api", f"clock {jump}")
    door.environment.update(LD_PRELOAD=str(faketime), FAKETIME_TIMESTAMP_FILE=str(clock), FAKETIME_NO_CACHE="1")
    door.environment.update(FAKETIME_DONT_FAKE_MONOTONIC="1")
    door.start()
    door.wait_until_ready()
    with httpx.Client(base_url=door.url, timeout=60, trust_env=False) as http:
        first = beside.submit(run_tool, http, house.acting(), _held(house.far, go_on), go_on)
        _wait_for(house, go_on)
        clock.write_text(jump)
        ahead = datetime.now(UTC) + timedelta(minutes=30)
        _, told = run_tool(http, "echo", {"message": "what time is it"})
        assert (told.metadata["way"], told.executed_at > ahead) == ("lane", jump == "+1h")
        later = {tool: beside.submit(run_tool, http, tool, _held(house.far, tool), tool) for tool in (house.acting(), house.asking())}
        for tool in later:
            _wait_for(house, tool)
        time.sleep(_LEASE_S + 1)
        house.far.released.add(go_on)
        status, result = first.result(60)
        assert (status, result.status, house.far.begun[go_on]) == (200, "success", 1), result
        assert len(house.lanes().keys() - others) == 1, "it is alive for the others"
        door.kill()
        for call in later.values():
            with pytest.raises(httpx.HTTPError):
                call.result(60)
    acting, asking = later
    house.far.released.update(later)
    lost, found = (
        house.cluster.ended_task(call_id_for_key(None, acting), 60).result,
        house.cluster.ended_task(call_id_for_key(None, asking), 60),
    )
    assert lost is not None
    assert lost.error is not None
    assert (lost.error.type, lost.error.details) == (ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})
    assert found.status is TaskState.COMPLETED
    assert [house.far.begun[tool] for tool in later] == [1, 2]


@pytest.mark.promise("nothing-is-left-over")
def test_when_the_parent_is_killed_its_doors_end_in_order(own: OwnHouse) -> None:
    own.house.parent.kill()
    wait_until(lambda: not any(map(is_alive, own.doors)), "the doors end with their parent")
    assert _statuses(own.house, own.lanes) == {WorkflowExecutionStatus.COMPLETED}


def test_when_the_parent_is_stopped_its_doors_answer_what_they_have_in_hand_and_their_lanes_complete(
    house: House, beside: ThreadPoolExecutor
) -> None:
    """The last test of the shared doors: it ends them."""
    doors, lanes, (http, _) = house.doors(), house.lanes().keys(), house.pair()
    last = beside.submit(run_tool, http, house.acting(), _held(house.far, "last"))
    _wait_for(house, "last")
    os.killpg(house.parent.pid, signal.SIGTERM)
    house.far.released.add("last")
    assert last.result(30)[1].metadata["way"] == "lane"
    assert house.parent.wait() == 0
    assert not any(map(is_alive, doors))
    assert len(lanes) == PROCESSES
    assert _statuses(house, lanes) == {WorkflowExecutionStatus.COMPLETED}


@pytest.mark.promise("accepted-means-ended")
def test_when_no_door_is_left_a_host_ends_the_calls_that_were_accepted(cluster: Cluster, far: FarServer, temporal_address: str) -> None:
    """The door is killed before the call can move."""
    door = cluster.member("api", "alone")
    door.start()
    door.wait_until_ready()
    alone = House(cluster, door, far, temporal_address)
    wait_until(lambda: len(alone.lanes()) == 1, "no other door is alive: the test before ends the shared house")
    far.look = psutil.Process(door.pid).kill
    try:
        with httpx.Client(base_url=door.url, timeout=60, trust_env=False) as http, pytest.raises(httpx.HTTPError):
            run_tool(http, f"far_asks_{MANY - 1}", {"line": "alone"}, "alone")
    finally:
        far.look = lambda: None
    wait_until(lambda: far.begun["alone"] == 2, "a host makes it")


def test_what_no_door_can_run_without_is_said_once_and_ends_the_parent(cluster: Cluster) -> None:
    parent = cluster.member("api --processes 2", "wrong", DATABASE_URL="postgresql+asyncpg://agent:x@127.0.0.1:1/agent")
    parent.start()
    assert parent.wait() == 1
    assert parent.output.count("TOOL_AGENT_DATABASE_URL cannot be used") == 1


def _statuses(house: House, doors: Collection[str]) -> set[WorkflowExecutionStatus | None]:
    return {asyncio.run(_status(house, door)) for door in doors}


async def _status(house: House, door: str) -> WorkflowExecutionStatus | None:
    client = await connect(house.temporal_address, "default", sandbox=False, patience_s=10)
    return (await client.get_workflow_handle(lane_id(door)).describe()).status


def _has_workflow(house: House, key: str) -> bool:
    return asyncio.run(_is_known(house, call_id_for_key(None, key)))


async def _is_known(house: House, workflow_id: str) -> bool:
    client = await connect(house.temporal_address, "default", sandbox=False, patience_s=10)
    return [workflow.id async for workflow in client.list_workflows(f'WorkflowId = "{workflow_id}"')] != []
