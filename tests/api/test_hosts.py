"""The hosts, and controlling tools on several of them or on none."""

from engine.calls.placements import Placements
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable
from tests.api.conftest import House, browse, with_doors
from toolagent.contracts.routes import ControlAction, RunState, ToolControl, ToolRoute


async def test_hosts_are_listed_with_where_they_live(stocked: House, database: Database) -> None:
    await HostTable(database, 3600).claim(HostClaim("host-a", "first", "/state on machine", {"default": 2}))
    [host] = (await stocked.http.get("/hosts")).json()["hosts"]
    told = (host["host"], host["instance"], host["origin"], host["buckets"], host["is_alive"])
    assert told == ("host-a", "first", "/state on machine", {"default": 2}, True)


async def test_where_no_host_is_alive_nothing_can_be_started(stocked: House, database: Database) -> None:
    nobody = Placements(None, ("default",), HostTable(database, 3600), stocked.routes)
    async with browse(with_doors(stocked, placements=nobody)) as http:
        answer = await http.post("/tools/weather/start")
    assert (answer.status_code, answer.json()["type"]) == (503, "unavailable")
    assert stocked.client.controls == []


async def test_a_tool_that_is_up_on_several_hosts_is_ended_on_all_of_them(stocked: House) -> None:
    for host in ("host-2", "host-3"):
        await stocked.routes.save(ToolRoute(tool_id="weather", state=RunState.RUNNING, host=host), "1.0.0")
    await stocked.routes.save(ToolRoute(tool_id="weather", state=RunState.STOPPED, host="host-4"), "1.0.0")
    assert (await stocked.http.delete("/tools/weather")).is_success
    assert stocked.client.controls == [
        ToolControl(tool_id="weather", action=ControlAction.STOP, host="host-3"),
        ToolControl(tool_id="weather", action=ControlAction.DESTROY, host="host-2"),
    ]
