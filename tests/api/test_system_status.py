"""`GET /system/status`: an overview of the service."""

from datetime import UTC, datetime

from engine.store.clock import now
from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.hosts import HostClaim, HostTable
from engine.store.sessions import SessionTable
from tests.api.conftest import COMPRESS, House
from tests.api.requests_for_tools import made
from toolagent.contracts.groups import GroupStep, ToolGroup
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sessions import OpenSession, SessionState, SessionView
from toolagent.contracts.system import GroupCounts, HostCounts, SessionCounts, SystemStatus, UnconfirmedStop, UnderRepair, WarmTool
from toolagent.contracts.task_specs import RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent_service.making.task_views import begun

_AT = datetime(2026, 11, 24, tzinfo=UTC)


async def test_the_status_has_the_specified_shape(stocked: House) -> None:
    waiting, running, ended = [await made(stocked) for _ in range(3)]
    await stocked.tasks.claim_slot(running.task_id, 9)
    await stocked.tasks.settle(ended.task_id, TaskState.FAILED, "No.")
    await stocked.registry.deactivate(COMPRESS.tool_id, COMPRESS.version)
    said = (await stocked.http.get("/system/status")).json()
    recent = said["coding_agent"].pop("recent_tasks")
    assert said == {
        "tools": {"total": 3, "active": 2},
        "coding_agent": {"running_count": 1, "running_task_ids": [running.task_id], "queued_count": 1},
        "service_agent": {
            "total_windows": 0,
            "im_connected": False,
            "im": {"state": "off", "contact_id": None, "connected_since": None, "waiting": 0},
            "windows": [],
        },
        "groups": {"total": 0, "with_lifecycle": 0},
        "sessions": {"living": {}, "stop_unconfirmed": []},
        "hosts": {"alive": 0, "dead": 0, "draining": 0},
        "warm": [],
        "under_repair": [],
        "alerts": [],
    }
    states = [(ended, "failed"), (running, "running"), (waiting, "pending")]
    assert [(one["task_id"], one["status"]) for one in recent] == [(task.task_id, status) for task, status in states]
    assert recent[0]["task_spec"] == ended.spec.model_dump(mode="json")


async def test_a_task_is_described_by_its_specification_where_only_that_does(stocked: House) -> None:
    spec = {"type": "build_tool", "tool_name": "slugs", "description": "Make slugs."}
    for description, told in (("", "Make slugs."), ("For the blog.", "For the blog.")):
        key = {"Idempotency-Key": f"k{description}"}
        body = {"description": description, "task_spec": spec}
        first, again = [(await stocked.http.post("/create_tool", json=body, headers=key)).json() for _ in range(2)]
        assert first["task_id"] == again["task_id"]
        assert (await stocked.http.get(f"/tasks/{first['task_id']}")).json()["description"] == told


async def test_the_status_tells_of_groups_sessions_hosts_warm_tools_and_repairs(stocked: House, database: Database) -> None:
    steps = tuple(GroupStep.model_validate({"tool_id": name, "role": name}) for name in ("launch", "stop"))
    group = ToolGroup(group_id="servers", name="Servers", lifecycle=True, steps=steps)
    await stocked.groups.replace((group, ToolGroup(group_id="advice", name="Advice")))
    sessions, hosts = SessionTable(database), HostTable(database, 3600.0)
    for number, (state, attempts) in enumerate(((SessionState.READY, 0), (SessionState.STOPPING, 3), (SessionState.STOPPING, 0))):
        session_id = f"session-{number:08}"
        view = SessionView(session_id=session_id, group_id="servers", state=state, stop_attempts=attempts, opened_at=_AT)
        await sessions.open(OpenSession(session_id=session_id, group=group), view, None)
    for host in ("a", "b"):
        await hosts.claim(HostClaim(host, host, host, {}))
    await hosts.drain("b")
    await stocked.routes.save(ToolRoute(tool_id="weather", state=RunState.RUNNING, host="a", started_at=_AT), "1.0.0")
    await stocked.routes.save(ToolRoute(tool_id="weather", state=RunState.STOPPED, host="b"), "1.0.0")
    repair = begun(MakeRequest(task_id="repair_00000001", spec=RepairTool(tool_id="weather")), _AT)
    await stocked.tasks.create(repair)
    said = SystemStatus.model_validate_json((await stocked.http.get("/system/status")).content)
    assert said.groups == GroupCounts(total=2, with_lifecycle=1)
    assert said.sessions == SessionCounts(
        living={"ready": 1, "stopping": 2},
        stop_unconfirmed=(UnconfirmedStop(session_id="session-00000001", group_id="servers", attempts=3),),
    )
    assert said.hosts == HostCounts(alive=2, dead=0, draining=1)
    assert said.warm == (WarmTool(tool_id="weather", state=RunState.RUNNING, host="a", since=_AT),)
    assert said.under_repair == (UnderRepair(tool_id="weather", task_id=repair.task_id, status=TaskState.PENDING),)


async def test_the_status_has_the_alerts_of_the_day(stocked: House, database: Database) -> None:
    events, details = EventTable(database), {"group_id": "servers", "reason": "The provider runs what no session launched."}
    kinds = (EventType.SESSION_ALERT, EventType.HEALTH_ALERT, EventType.TOOL_ADDED)
    await events.add(tuple(Event(event_id=kind.value, event_type=kind, tool_id="stop", at=now(), details={**details}) for kind in kinds))
    old = Event(event_id="old", event_type=EventType.SESSION_ALERT, tool_id="stop", at=_AT)
    of_a_call = Event(event_id="left", event_type=EventType.HEALTH_ALERT, tool_id="stop", call_id="call-12345678", at=now())
    await events.add((old, of_a_call))
    said = SystemStatus.model_validate_json((await stocked.http.get("/system/status")).content)
    assert {alert.event_type for alert in said.alerts} == {EventType.SESSION_ALERT, EventType.HEALTH_ALERT}
    assert [alert.details for alert in said.alerts] == [details] * 2
