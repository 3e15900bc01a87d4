"""Two hosts and a front door on PostgreSQL, each with a state directory of its own; the second host has no data folder."""

import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from tests.machine import lacking
from tests.postgres import PostgresServer, postgres_database
from tests.system.cluster import Cluster, Member, running_cluster
from tests.system.effects import count_of, wait_for_effect
from tests.system.leftovers import processes_of
from tests.system.service_process import settings_beside
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.hosts import Host, HostDrain
from toolagent.contracts.tasks import TaskView

pytestmark = pytest.mark.timeout(400)

_CALLS = 4
_BETWEEN_S = 0.2
"""Calls without a pause take a processor, and meet no other moments of a drain."""

_EVERYBODY_KNOWS = timedelta(seconds=1.5)
"""After a heartbeat, what others have read of the hosts has been read again."""


@dataclass(frozen=True, slots=True)
class House:
    """A cluster whose members are ready, and `tools` that are up on them."""

    cluster: Cluster
    hosts: dict[str, Member]

    tools = ("once", "again", "crowded")

    def mend(self, effects: Path) -> None:
        """Restore the cluster after a test. Concurrent calls of a tool that is up nowhere would start it on both hosts."""
        for host, member in self.hosts.items():
            if not member.is_running:
                member.start()
                member.wait_until_ready()
            wait_until(lambda host=host: self.cluster.hosts()[host].is_alive, f"{host} is alive")
            self.cluster.http.delete(f"/hosts/{host}/drain").raise_for_status()
        for tool_id in self.tools:
            self.cluster.ended_task(self.cluster.begin(tool_id, {"effects": str(effects), "line": "up"}))


@pytest.fixture
def house(started: House, effects: Path) -> House:
    started.mend(effects)
    return started


@pytest.fixture(scope="module")
def started(postgres: PostgresServer, temporal_address: str, catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    folder = tmp_path_factory.mktemp("hosts")
    settings = {"TEMPORAL_ADDRESS": temporal_address, "CONTENT_STORE": "database", "HOST_HEARTBEAT_S": "1", "HOST_LEASE_S": "5"}
    settings |= settings_beside(catalog)  # also for those that have no catalog
    with postgres_database(postgres) as url, running_cluster(folder, DATABASE_URL=url, **settings) as cluster:
        members = [cluster.member("worker", "one", catalog), cluster.member("worker", "two"), cluster.member("api", "door")]
        for member in members:
            member.start()
        for member in members:
            member.wait_until_ready()
        *hosts, door = members
        cluster.enter(door)
        yield House(cluster, {member.host: member for member in hosts})


def _result(task: TaskView) -> ToolResult:
    assert task.result is not None
    return task.result


def _host_of(task: TaskView) -> str:
    host = _result(task).metadata["host"]
    assert isinstance(host, str), task
    return host


def test_both_hosts_run_tools_and_the_one_without_a_data_folder_has_them_from_the_content_store(house: House, effects: Path) -> None:
    cluster = house.cluster
    tasks = [cluster.ended_task(cluster.begin(tool_id, {"effects": str(effects)})) for tool_id in house.tools]
    assert [_result(task).error for task in tasks] == [None] * 3
    assert {_host_of(task) for task in tasks} == house.hosts.keys()
    assert [(host.host, host.is_alive) for host in cluster.hosts().values()] == [(host, True) for host in sorted(house.hosts)]


def test_when_a_host_is_killed_under_load_every_call_ends_once_and_its_tools_come_up_elsewhere(house: House, effects: Path) -> None:
    cluster, go_on = house.cluster, effects.with_name("go on")
    acting = {"effects": str(effects), "until": str(go_on)}
    calls = {
        f"{tool}-{number}": cluster.begin(tool, {**acting, "line": f"{tool}-{number}"})
        for tool in ("once", "again")
        for number in range(_CALLS)
    }
    for name in calls:
        wait_for_effect(effects, name)
    status = {tool["tool_id"]: tool for tool in cluster.http.get("/tools/status").json()["tools"] if tool["state"] == "running"}
    killed = house.hosts[status["once"]["host"]]
    killed.kill()
    late = [cluster.begin(tool, {**acting, "line": f"late {tool}"}) for tool in ("once", "again")]
    go_on.touch()
    wait_until(lambda: not processes_of(killed.state), "nothing of the killed host is left")

    tasks = {name: cluster.ended_task(call_id) for name, call_id in calls.items()}
    for name, task in tasks.items():
        error = _result(task).error
        if name.startswith("again"):
            assert (name, error, count_of(effects, name) >= 1) == (name, None, True)
        elif error is None:
            assert (name, count_of(effects, name)) == (name, 1)
        else:
            assert (error.type, error.details) == (ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})
            assert (name, count_of(effects, name)) == (name, 1)
    assert {_result(task).error_type for name, task in tasks.items() if name.startswith("once")} == {ErrorType.EXECUTION_ERROR}
    for task in [cluster.ended_task(call_id) for call_id in late]:
        assert (_result(task).error, _host_of(task) == killed.host) == (None, False)
    assert [count_of(effects, f"late {tool}") for tool in ("once", "again")] == [1, 1]

    wait_until(lambda: not cluster.hosts()[killed.host].is_alive, "the dead host is known to be dead")
    running = [tool for tool in cluster.http.get("/tools/status").json()["tools"] if tool["state"] == "running"]
    assert killed.host not in {tool["host"] for tool in running}
    assert "once" in {tool["tool_id"] for tool in running}
    killed.start()
    killed.wait_until_ready()
    wait_until(lambda: cluster.hosts()[killed.host].is_alive, "the restarted host is itself again")


def _noted(cluster: Cluster, host: str) -> bool:
    """Whether the host, and all others, know that it drains."""
    seen = cluster.hosts()[host]
    return seen.draining_since is not None and seen.seen_at > seen.draining_since + _EVERYBODY_KNOWS


def _is_known(host: Host) -> bool:
    """Whether the host is alive, and all others know it."""
    return host.is_alive and host.seen_at > host.started_at + _EVERYBODY_KNOWS


def _called_until(cluster: Cluster, is_over: threading.Event, effects: Path) -> list[tuple[float, ToolResult]]:
    """Calls of each kind, one after the other: the start time and the result of each."""
    asked = list[tuple[float, ToolResult]]()
    kinds: tuple[tuple[str, dict[str, JsonValue]], ...] = (
        ("calculator", {"expression": "1 + 1"}),
        ("crowded", {"effects": str(effects), "line": "crowded"}),
        ("again", {"effects": str(effects), "line": "again"}),
    )
    with httpx.Client(base_url=cluster.http.base_url, timeout=120, trust_env=False) as http:
        while not is_over.wait(_BETWEEN_S):
            for tool_id, params in kinds:
                began = time.monotonic()
                answer = http.post("/run_tool", json={"tool_id": tool_id, "params": params})
                asked.append((began, ToolResult.model_validate_json(answer.content)))
    return asked


@pytest.mark.promise("accepted-means-ended")
def test_a_host_drains_under_load_without_a_failed_call_and_drains_on_after_kill_9(house: House, effects: Path) -> None:
    cluster, go_on, is_over = house.cluster, effects.with_name("go on"), threading.Event()
    held = {tool: cluster.begin(tool, {"effects": str(effects), "until": str(go_on), "line": f"held {tool}"}) for tool in ("once", "again")}
    for tool in held:
        wait_for_effect(effects, f"held {tool}")
    [host] = {
        tool["host"]
        for tool in cluster.http.get("/tools/status").json()["tools"]
        if (tool["tool_id"], tool["state"]) == ("once", "running")
    }
    drained = house.hosts[host]
    with ThreadPoolExecutor(2) as threads:
        load = [threads.submit(_called_until, cluster, is_over, effects) for _ in range(2)]
        try:
            begun = HostDrain.model_validate_json(cluster.http.post(f"/hosts/{host}/drain").content)
            assert (begun.is_drained, begun.warnings) == (False, ())
            wait_until(lambda: _noted(cluster, host), "the host has heard that it drains")
            noted = time.monotonic()
            wait_until(lambda: sum(cluster.hosts()[host].calls.values()), "it counts what it has in hand")
            late = [cluster.begin(tool, {"effects": str(effects), "line": f"late {tool}"}) for tool in ("once", "again")]
            assert [(_result(task).error, _host_of(task) == host) for task in map(cluster.ended_task, late)] == [(None, False)] * 2
            assert _progress(cluster, host).tools, "a tool that works stays up"
            go_on.touch()
            assert [_result(cluster.ended_task(call_id)).error for call_id in held.values()] == [None] * 2
            wait_until(lambda: _progress(cluster, host).is_drained, "nothing is left on it")
        finally:
            is_over.set()
            go_on.touch()
    results = [result for future in load for result in future.result()]
    assert [result.error for _, result in results if result.error is not None] == []
    after = [result for began, result in results if began > noted]
    assert {result.tool_id for result in after} == {"calculator", "crowded", "again"}
    assert host not in [result.metadata["host"] for result in after]
    assert [count_of(effects, f"held {tool}") for tool in held] == [1, 1]
    assert host not in {tool["host"] for tool in cluster.http.get("/tools/status").json()["tools"]}

    drained.kill()
    drained.start()
    drained.wait_until_ready()
    assert cluster.hosts()[host].draining_since == begun.host.draining_since
    task = cluster.ended_task(cluster.begin("crowded", {"effects": str(effects)}))
    assert (_result(task).error, _host_of(task) == host) == (None, False)
    assert cluster.http.delete(f"/hosts/{host}/drain").json()["host"]["draining_since"] is None
    assert cluster.http.post("/tools/crowded/stop").is_success
    wait_until(lambda: _host_of(_called(cluster, "crowded", effects)) == host, "it takes calls again")


def _called(cluster: Cluster, tool_id: str, effects: Path) -> TaskView:
    assert cluster.http.post(f"/tools/{tool_id}/stop").is_success
    return cluster.ended_task(cluster.begin(tool_id, {"effects": str(effects)}))


def _progress(cluster: Cluster, host: str) -> HostDrain:
    return HostDrain.model_validate_json(cluster.http.get(f"/hosts/{host}/drain").content)


def test_a_tool_is_stopped_on_every_host_and_started_on_one(house: House) -> None:
    http = house.cluster.http
    assert http.post("/tools/versatile/start").json()["state"] == "running"
    assert http.post("/tools/versatile/stop").json()["state"] == "stopped"
    states = {tool["state"] for tool in http.get("/tools/status").json()["tools"] if tool["tool_id"] == "versatile"}
    assert states == {"stopped"}


@pytest.mark.long
def test_a_host_that_finds_its_id_taken_stops_itself(house: House, postgres: PostgresServer) -> None:
    member = house.cluster.member("worker", "loser", HOST_ID="host-loser")
    member.start()
    member.wait_until_ready()
    database = postgres.execute("SELECT datname FROM pg_stat_activity WHERE application_name = 'tool-agent' LIMIT 1")
    postgres.execute("UPDATE hosts SET instance = 'another' WHERE host = 'host-loser'", database)
    assert member.wait() == 1
    assert "no longer" in member.output
    assert postgres.execute("SELECT instance FROM hosts WHERE host = 'host-loser'", database) == "another", "it is not ours to remove"


@pytest.mark.long
@pytest.mark.parametrize("shift", ["-1h", "+1h"])
def test_a_host_whose_clock_is_an_hour_off_is_alive_and_runs_tools(house: House, shift: str, effects: Path) -> None:
    faketime = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if faketime is None:
        lacking("faketime is not installed (Debian: apt-get install faketime)")
    cluster = house.cluster
    member = cluster.member("worker", f"clock {shift}")
    member.environment.update(LD_PRELOAD=str(faketime), FAKETIME=shift, FAKETIME_DONT_FAKE_MONOTONIC="1")
    member.start()
    member.wait_until_ready()
    everybody = {member.host, *house.hosts}
    wait_until(lambda: {host.host for host in cluster.hosts().values() if _is_known(host)} >= everybody, "all are alive, and known to be")
    for tool_id in (*house.tools, "calculator"):  # which the loads of hosts count too
        assert cluster.http.post(f"/tools/{tool_id}/stop").is_success
    tasks = [cluster.ended_task(cluster.begin(tool_id, {"effects": str(effects)})) for tool_id in house.tools]
    assert [_result(task).error for task in tasks] == [None] * 3
    assert {_host_of(task) for task in tasks} == {member.host, *house.hosts}
    member.end()
    assert member.host not in cluster.hosts()
