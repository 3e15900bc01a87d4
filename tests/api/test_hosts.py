"""Hosts, and control of tools on several hosts or on none."""

import pytest

from engine.calls.placements import Placements
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable
from tests.api.conftest import House, browse, with_doors
from toolagent.client.failures import ControlFailedError
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.contracts.hosts import HostDrain
from toolagent.contracts.routes import ControlAction, RunState, ToolControl, ToolRoute
from toolagent.testing.fake_client import FakeToolAgentClient


async def test_hosts_are_listed_with_where_they_live(stocked: House, database: Database) -> None:
    await HostTable(database, 3600).claim(HostClaim("host-a", "first", "/state on machine", {"default": 2}))
    [host] = (await stocked.http.get("/hosts")).json()["hosts"]
    told = (host["host"], host["instance"], host["origin"], host["buckets"], host["is_alive"])
    assert told == ("host-a", "first", "/state on machine", {"default": 2}, True)


async def test_where_no_host_is_alive_nothing_can_be_started(stocked: House, database: Database) -> None:
    nobody = Placements(None, {"default": 1}, HostTable(database, 3600), stocked.routes)
    async with browse(with_doors(stocked, placements=nobody)) as http:
        answer = await http.post("/tools/weather/start")
    assert (answer.status_code, answer.json()["type"]) == (503, "unavailable")
    assert stocked.client.controls == []


class _PartlyDeaf(FakeToolAgentClient):
    """A client that reaches all hosts but one."""

    async def control(self, control: ToolControl) -> ToolRoute:
        route = await super().control(control)
        if control.host == "host-2":
            raise ControlFailedError(ToolError(type=ErrorType.UNAVAILABLE, message="The tool's host did not do it."))
        return route


async def _up_on(stocked: House, *hosts: str) -> None:
    for host in hosts:
        await stocked.routes.save(ToolRoute(tool_id="weather", state=RunState.RUNNING, host=host), "1.0.0")


async def test_a_tool_is_stopped_on_every_host_it_is_up_on(stocked: House) -> None:
    await _up_on(stocked, "host-2", "host-3")
    await stocked.routes.save(ToolRoute(tool_id="weather", state=RunState.STOPPED, host="host-4"), "1.0.0")
    assert (await stocked.http.post("/tools/weather/stop")).is_success
    assert stocked.client.controls == [
        ToolControl(tool_id="weather", action=ControlAction.STOP, host=host) for host in ("host-2", "host-3")
    ]


async def test_every_host_that_may_have_a_tool_is_told_to_destroy_it(stocked: House, database: Database) -> None:
    await _up_on(stocked, "host-2", "host-3")
    await HostTable(database, 3600).claim(HostClaim("host-a", "first", "/state on machine", {}))
    assert (await stocked.http.delete("/tools/weather")).is_success
    hosts = ("host-2", "host-3", "host-a")
    assert stocked.client.controls == [ToolControl(tool_id="weather", action=ControlAction.DESTROY, host=host) for host in hosts]


async def test_a_host_that_does_not_answer_keeps_no_tool_from_being_ended_elsewhere(stocked: House) -> None:
    await _up_on(stocked, "host-2", "host-3")
    client = _PartlyDeaf()
    async with browse(with_doors(stocked, client=client)) as http:
        stop, destroy = await http.post("/tools/weather/stop"), await http.delete("/tools/weather")
    assert (stop.status_code, destroy.status_code) == (503, 200)
    orders = [(action, host) for action in (ControlAction.STOP, ControlAction.DESTROY) for host in ("host-2", "host-3")]
    assert [(order.action, order.host) for order in client.controls] == orders


async def test_a_tool_that_no_host_removed_is_not_said_to_be_gone(stocked: House) -> None:
    await _up_on(stocked, "host-2")
    async with browse(with_doors(stocked, client=_PartlyDeaf())) as http:
        assert (await http.delete("/tools/weather")).status_code == 503


async def test_a_host_is_drained_followed_and_takes_calls_again(stocked: House, database: Database) -> None:
    hosts = HostTable(database, 3600)
    for host in ("host-a", "host-b"):
        await hosts.claim(HostClaim(host, host, host, {"default": 2}))
    path = "/hosts/host-a/drain"
    drained, again, seen = [
        HostDrain.model_validate_json((await ask(path)).content) for ask in (stocked.http.post, stocked.http.post, stocked.http.get)
    ]
    assert drained == again == seen
    assert (drained.host.draining_since is not None, drained.is_drained, drained.calls, drained.tools) == (True, False, 0, 0)
    ended = HostDrain.model_validate_json((await stocked.http.delete(path)).content)
    assert (ended.host.draining_since, ended.is_drained) == (None, False)


@pytest.mark.parametrize("host", ["host-z", "a%00b", "A", "x" * 99])
async def test_a_host_that_is_not_there_is_404_and_said_to_be(stocked: House, host: str) -> None:
    for ask in (stocked.http.post, stocked.http.get, stocked.http.delete):
        answer = await ask(f"/hosts/{host}/drain")
        assert (answer.status_code, answer.json()["type"]) == (404, "host_not_found")
