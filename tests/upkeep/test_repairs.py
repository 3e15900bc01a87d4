"""Tools whose calls fail are repaired, by hosts that may die at any moment."""

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from engine.calls.effects.ended import Ended, Places, SettledCalls
from engine.calls.settlement import settled
from engine.runtimes.running.route_board import RouteBoard
from engine.runtimes.runtime import Running
from engine.store.call_outcomes import CallOutcomes
from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.hosts import HostTable
from engine.store.production_repairs import ProductionRepairs
from engine.store.quarantine import QuarantineTable
from engine.store.repair_tables import production_repairs
from engine.store.routes import RouteTable
from engine.store.tasks import TaskTable
from engine.store.tool_alerts import ToolAlerts
from engine.upkeep.tools.maintenance import ServiceMaintenance
from engine.upkeep.tools.repairs import RepairPolicy, RepairsFromProduction, RepairTables, repair_task_id
from tests.parts import tool_registry
from toolagent.client.failures import MakingUnreachableError
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import CallRecord, Event
from toolagent.contracts.routes import RunState
from toolagent.contracts.sources import LocalSource, RemoteSource, ToolSource
from toolagent.contracts.task_specs import RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import TaskConflictError
from toolagent_service.contracts.maintenance import ServiceRound
from toolagent_service.contracts.repairs import Meanwhile
from toolagent_service.making.repair_rule import RepairRules
from toolagent_service.making.task_views import begun

ARCHIVE = "file_0123"
OURS = LocalSource(host_dir="x", content=ARCHIVE)
FIRST = repair_task_id("t", "1.0.0", 1)


class Workflows:
    """Starts workflows once for each id, whoever asks."""

    def __init__(self, *failures: Exception) -> None:
        self.started: dict[str, MakeRequest] = {}
        self._failures = [*failures]

    async def start(self, request: MakeRequest) -> None:
        await asyncio.sleep(0)
        if self._failures:
            raise self._failures.pop()
        assert self.started.setdefault(request.task_id, request) == request


class Production:
    """A tool `t` and its calls."""

    def __init__(self, database: Database) -> None:
        self.database, self.workflows = database, Workflows()
        self.registry, self.calls, self.repairs = tool_registry(database), CallTable(database), ProductionRepairs(database)
        self.tasks, self._number = TaskTable(database), 0

    async def register(self, version: str = "1.0.0", source: ToolSource = OURS, tool_id: str = "t") -> None:
        await self.registry.register(ToolManifest(tool_id=tool_id, name="T", version=version), (source,))

    async def call(self, error: ToolError | None = None, times: int = 1, version: str = "1.0.0", tool_id: str = "t") -> None:
        for _ in range(times):
            self._number += 1
            call_id, at = f"call-{self._number:08}", datetime.now(UTC)
            status = "error" if error else "success"
            result = ToolResult.model_validate({"status": status, "error": error, "error_type": error and error.type, "call_id": call_id})
            record = CallRecord(
                call_id=call_id,
                tool_id=tool_id,
                version=version,
                fingerprint=call_id,
                workflow_id="w",
                run_id="r",
                params={"number": self._number},
                created_at=at,
            )
            await self.calls.settle(record, result, ())

    def host(self, rules: RepairRules | None = None, **policy: object) -> RepairsFromProduction:
        outcomes, alerts, quarantine = CallOutcomes(self.database), ToolAlerts(self.database), QuarantineTable(self.database)
        tables = RepairTables(outcomes, alerts, quarantine, self.repairs, self.registry, self.tasks)
        return RepairsFromProduction(tables, self.workflows, RepairPolicy(rules or RepairRules(3), **policy))  # pyright: ignore[reportArgumentType]

    async def end(self, times: int, version: str = "1.0.0", why: str = "exited with code 3") -> None:
        """Its process starts and ends by itself."""
        entry = await self.registry.entry("t", version)
        assert entry is not None
        board = RouteBoard(RouteTable(self.database), "here", EventTable(self.database).warn)
        for _ in range(times):
            self._number += 1
            await board.starting(entry, 0)
            await board.running(entry, 0, Running("http://127.0.0.1:1", datetime.now(UTC), pid=self._number))
            await board.ended("t", version, RunState.ERROR, why)

    async def alerts(self) -> list[Event]:
        return [event for event in await EventTable(self.database).of_tool("t") if event.event_type == "health_alert"]


@pytest.fixture
def production(database: Database) -> Production:
    return Production(database)


FAULT = ToolError(type=ErrorType.EXECUTION_ERROR, message="ZeroDivisionError")


@pytest.mark.promise("repaired-from-production")
async def test_a_tool_that_fails_is_repaired_once_whoever_decides_and_dies(production: Production) -> None:
    await production.register("0.9.0")
    await production.register()
    await production.call(times=2)
    await production.call(FAULT, times=3)
    production.workflows = Workflows(MakingUnreachableError("Temporal is away."))
    with pytest.raises(MakingUnreachableError):
        await production.host(meanwhile=Meanwhile.PREVIOUS).run()
    (open_one,) = await production.repairs.under_way()
    assert (open_one.task_id, open_one.meanwhile, open_one.previous) == (FIRST, Meanwhile.PREVIOUS, "0.9.0")
    done = await asyncio.gather(*(production.host().run() for _ in range(3)))
    assert {one for round_ in done for one in round_} == {f"repair: {FIRST}"}
    (request,) = production.workflows.started.values()
    assert isinstance(request.spec, RepairTool)
    assert request.spec.error == "Version 1.0.0: 3 of its last 5 calls failed (execution_error ×3).\n- ZeroDivisionError"
    await production.tasks.create(begun(request, datetime.now(UTC)))
    assert await production.host().run() == ()
    (alert,) = await production.alerts()
    assert isinstance(alert.details, dict)
    assert (alert.details["tool_id"], alert.details["task_id"]) == ("t", FIRST)
    assert alert.details["last_healthy"]


async def test_after_a_repair_that_failed_there_is_a_pause_and_older_failures_count_no_more(production: Production) -> None:
    await production.register()
    await production.call(FAULT, times=3)
    rules = RepairRules(3, pause_s=0.001)
    await production.host(rules).run()
    (request,) = production.workflows.started.values()
    await production.tasks.create(begun(request, datetime.now(UTC)))
    await production.tasks.settle(request.task_id, TaskState.FAILED, "It could not be mended.")
    assert await production.host(rules).run() == ()
    await production.call(FAULT, times=3)
    assert await production.host(RepairRules(3)).run() == (), "the pause"
    assert await production.host(rules).run() == (f"repair: {repair_task_id('t', '1.0.0', 2)}",)


@pytest.mark.parametrize(
    ("source", "policy", "told"),
    [
        (OURS, {"has_model": False}, "TOOL_AGENT_MODEL"),
        (OURS, {"rules": RepairRules(3, per_day=0)}, "TOOL_AGENT_REPAIRS_PER_DAY"),
        (RemoteSource(remote_url="http://127.0.0.1:1/"), {}, "tell its operator"),
    ],
)
async def test_what_cannot_be_repaired_is_an_alert_once_a_pause_and_calls_go_on(
    production: Production, source: ToolSource, policy: dict[str, object], told: str
) -> None:
    await production.register(source=source)
    await production.call(FAULT, times=3)
    for _ in range(3):
        assert await production.host(**policy).run() == ()  # pyright: ignore[reportArgumentType]
        await production.call(FAULT)
    assert await production.repairs.under_way() == ()
    (alert,) = await production.alerts()
    assert told in str(alert.details)


async def test_failures_that_are_not_the_tools_open_nothing(production: Production) -> None:
    await production.register()
    for kind in (ErrorType.TIMEOUT, ErrorType.UNAVAILABLE, ErrorType.VALIDATION_ERROR, ErrorType.CANCELLED, ErrorType.REJECTED):
        await production.call(ToolError(type=kind, message=""), times=5)
    await production.call(ToolError(type=ErrorType.EXECUTION_ERROR, message="", details={"attempts": 3}), times=5)
    await production.call(FAULT, times=5, version="0.9.0")
    assert await production.host().run() == ()
    assert await production.alerts() == []


async def test_a_tool_that_does_not_stay_up_is_repaired_though_nobody_calls_it_and_calls_go_on_meanwhile(production: Production) -> None:
    await production.register("0.9.0")
    await production.end(3, "0.9.0")
    await production.register()
    await production.end(2)
    assert await production.host().run() == (), "those before were another version's"
    await production.end(1, why="It is not healthy: /health answered 503.")
    assert await production.host().run() == (f"repair: {FIRST}",)
    (request,) = production.workflows.started.values()
    assert isinstance(request.spec, RepairTool)
    assert request.spec.error == (
        "Version 1.0.0: its process ended by itself, or failed its checks, 3 times lately."
        "\n- It is not healthy: /health answered 503.\n- exited with code 3"
    )
    (repair,) = await production.repairs.under_way()
    assert repair.meanwhile is Meanwhile.SERVE
    await production.tasks.create(begun(request, datetime.now(UTC)))
    await production.tasks.settle(request.task_id, TaskState.FAILED)
    rules = RepairRules(3, pause_s=0.001)
    assert await production.host(rules).run() == (), "what was before the repair, and the alert of the repair, count no more"
    await production.end(3)
    assert await production.host(rules).run() == (f"repair: {repair_task_id('t', '1.0.0', 2)}",)


async def test_an_end_during_a_call_opens_nothing_before_it_is_known_how_the_call_ended(production: Production) -> None:
    await production.register()
    record = CallRecord(
        call_id="call-99999999",
        tool_id="t",
        version="1.0.0",
        fingerprint="f",
        workflow_id="w",
        run_id="r",
        params={"number": 0},
        created_at=datetime.now(UTC),
    )
    for _ in range(3):
        await production.calls.mark_sent(record, again=True)
    await production.end(3)
    assert await production.host().run() == ()
    ended = ToolError(type=ErrorType.EXECUTION_ERROR, message="Lost.", details={"outcome": "unknown", "tool_ended": "It ended."})
    result = ToolResult.model_validate({"status": "error", "error": ended, "error_type": ended.type, "call_id": record.call_id})
    places = Places(production.calls, SettledCalls(), note_crash=QuarantineTable(production.database).note_crash)
    await settled(Ended(record, result, was_started=True), places)
    assert await production.host().run() == (f"repair: {FIRST}",)
    (request,) = production.workflows.started.values()
    assert isinstance(request.spec, RepairTool)
    assert "1 input that ended its process again and again" in (request.spec.error or "")


async def test_connections_to_a_server_of_others_that_end_open_nothing(production: Production) -> None:
    await production.register(source=RemoteSource(remote_url="http://127.0.0.1:1/"))
    await production.end(9)
    assert await production.host().run() == ()
    assert len(await production.alerts()) == 9


async def test_where_many_tools_fail_at_once_few_repairs_are_open_and_the_others_serve(production: Production) -> None:
    for tool_id in ("a", "b", "c"):
        await production.register(tool_id=tool_id)
        await production.call(FAULT, times=3, tool_id=tool_id)
    assert len(await production.host(at_once=2).run()) == 2
    await production.host(at_once=2).run()
    assert [one.tool_id for one in await production.repairs.under_way()] == ["a", "b"]
    request = production.workflows.started[repair_task_id("a", "1.0.0", 1)]
    await production.tasks.create(begun(request, datetime.now(UTC)))
    await production.tasks.settle(request.task_id, TaskState.FAILED)
    await production.host(at_once=2).run()
    assert {one.tool_id for one in await production.repairs.under_way()} == {"b", "c"}


async def test_a_tool_that_a_person_has_repaired_is_left_to_that(production: Production) -> None:
    await production.register()
    await production.call(FAULT, times=3)
    asked = MakeRequest(task_id="repair_0000000a", spec=RepairTool(tool_id="t"))
    await production.tasks.create(begun(asked, datetime.now(UTC)))
    assert await production.host().run() == ()
    assert await production.repairs.under_way() == ()


async def test_where_the_id_is_somebody_elses_the_next_attempt_has_another(production: Production) -> None:
    await production.register()
    await production.call(FAULT, times=3)
    production.workflows = Workflows(TaskConflictError(FIRST))
    rules = RepairRules(3, pause_s=0.001)
    assert await production.host(rules).run() == ()
    await production.call(FAULT, times=3)
    assert await production.host(rules).run() == (f"repair: {repair_task_id('t', '1.0.0', 2)}",)


async def test_a_quarantined_input_opens_a_repair_that_leaves_the_tool_in_use(production: Production) -> None:
    await production.register()
    quarantine = QuarantineTable(production.database)
    ended = ToolError(type=ErrorType.EXECUTION_ERROR, message="Lost.", details={"outcome": "unknown", "tool_ended": "It ended."})
    await production.call(ended, times=2)
    for call_id in ("call-00000001", "call-00000002"):
        record = await production.calls.get(call_id)
        assert record is not None
        await quarantine.note_crash(record.model_copy(update={"params": {"number": 0}}), "It ended.")
    await production.call(times=3)
    assert await production.host().run() == (f"repair: {FIRST}",)
    (repair,) = await production.repairs.under_way()
    assert repair.meanwhile is Meanwhile.SERVE


@pytest.mark.parametrize("is_set_back", [False, True])
async def test_a_tool_that_flaps_is_repaired_as_often_as_it_may_and_then_told_of(production: Production, is_set_back: bool) -> None:
    """Also if the clock is set back again and again, so that all earlier times are in the future."""
    await production.register()
    rules, started = RepairRules(2, pause_s=0.001, per_day=2), set[str]()
    for _ in range(6):
        for error in (FAULT, None, FAULT):
            await production.call(error)
        await production.host(rules).run()
        for task_id in production.workflows.started.keys() - started:
            await production.tasks.create(begun(production.workflows.started[task_id], datetime.now(UTC)))
            await production.tasks.settle(task_id, TaskState.FAILED)
            started.add(task_id)
        if is_set_back:
            late = "2126-01-01T00:00:00.000000+00:00"
            async with production.database.write() as connection:
                await connection.execute(update(production_repairs).values(opened_at=late))
                await connection.execute(update(production_repairs).where(production_repairs.c.ended_at.is_not(None)).values(ended_at=late))
            await production.host(rules).run()
    assert started == {repair_task_id("t", "1.0.0", attempt) for attempt in (1, 2)}
    assert len(await production.alerts()) > len(started)
    assert await production.repairs.under_way() == ()


async def test_a_round_of_the_service_that_fails_keeps_no_other_from_its_own(database: Database) -> None:
    done: list[str] = []

    async def fails() -> tuple[str, ...]:
        await asyncio.sleep(0)
        raise MakingUnreachableError("Temporal is away.")

    async def works() -> tuple[str, ...]:
        await asyncio.sleep(0)
        done.append("it")
        return ("it was done",)

    hosts = HostTable(database, 3600.0)
    with pytest.raises(MakingUnreachableError):
        await ServiceMaintenance(hosts, (fails, works)).round()
    assert done == ["it"]
    assert await ServiceMaintenance(hosts, (works,)).round() == ServiceRound(done=("it was done",))


async def test_what_a_tool_says_may_be_any_text(production: Production) -> None:
    """PostgreSQL stores no NUL."""
    await production.register()
    await production.call(ToolError(type=ErrorType.EXECUTION_ERROR, message="one\0two"), times=3)
    assert await production.host().run() == (f"repair: {FIRST}",)
    (request,) = production.workflows.started.values()
    assert isinstance(request.spec, RepairTool)
    assert request.spec.error.endswith("- one\N{REPLACEMENT CHARACTER}two")
