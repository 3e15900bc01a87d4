"""Calls of a version under repair, and calls with quarantined inputs."""

from typing import TYPE_CHECKING

import pytest
from pydantic import JsonValue

from engine.calls.cached_tools import CachedTools, CachedTroubles
from engine.calls.checks.asked import Trouble
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.production_repairs import ProductionRepairs
from engine.store.quarantine import QuarantineTable, input_of
from engine.store.tasks import TaskTable
from tests.parts import tool_registry
from tests.store.test_production_repairs import AT, new
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import BuiltinSource
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.results import QUARANTINED, reason_of
from toolagent_service.contracts.repairs import Meanwhile
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, CallPlan, Finished, SettleRequest
from toolagent_service.making.task_views import begun

if TYPE_CHECKING:
    from tests.calls.conftest import Desk

SOURCE = BuiltinSource(handler="pure")
MANIFEST = ToolManifest(tool_id="t", name="T", side_effect_scope=SideEffectScope.NONE, timeout_s=1)
TASK = "repair_00000001"


def plan_of(admission: Admission) -> CallPlan:
    assert isinstance(admission, Admitted), admission
    return admission.plan


def refused(admission: Admission) -> ToolResult:
    assert isinstance(admission, Answered)
    return admission.result


async def repaired(desk: "Desk", meanwhile: Meanwhile, previous: str | None = None) -> None:
    """Version 1.0.0 of `t` is under repair, after 0.9.0."""
    for version in ("0.9.0", "1.0.0"):
        await desk.registry.register(MANIFEST.model_copy(update={"version": version}), (SOURCE,))
    opened = new()
    assert await desk.repairs.open(
        type(opened)(opened.tool_id, opened.version, 1, opened.reason, opened.event, meanwhile, previous, opened.request)
    )


@pytest.mark.promise("repaired-from-production")
async def test_calls_of_a_version_under_repair_are_unavailable_with_the_task(desk: "Desk") -> None:
    await repaired(desk, Meanwhile.REFUSE)
    result = refused(await desk.admit("t"))
    assert result.error is not None
    assert result.error.type is ErrorType.UNAVAILABLE
    assert result.error.details == {"reason": "under_repair", "task_id": TASK, "version": "1.0.0", "sent": False}
    assert f"GET /tasks/{TASK}" in result.error.message
    assert plan_of(await desk.admit("t", version="0.9.0", call_id="call-other001")).version == "0.9.0"


@pytest.mark.parametrize("status", [TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED])
async def test_they_go_on_when_the_task_has_ended_however(desk: "Desk", database: Database, status: TaskState) -> None:
    await repaired(desk, Meanwhile.REFUSE)
    request = new().request
    assert request is not None
    tasks = TaskTable(database)
    await tasks.create(begun(request, AT))
    refused(await desk.admit("t"))
    assert status in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED)
    await tasks.settle(request.task_id, status)
    assert plan_of(await desk.admit("t", call_id="call-other001")).version == "1.0.0"


async def test_the_version_before_stands_in_and_the_result_says_so(desk: "Desk") -> None:
    await repaired(desk, Meanwhile.PREVIOUS, "0.9.0")
    plan = plan_of(await desk.admit("t"))
    assert (plan.version, plan.instead_of, plan.repair) == ("0.9.0", "1.0.0", TASK)
    result = await desk.settlements.settle(SettleRequest(plan=plan, outcome=Finished(output=1), workflow_id="w", run_id="r"))
    told = {name: result.metadata[name] for name in ("version", "instead_of", "repair")}
    assert told == {"version": "0.9.0", "instead_of": "1.0.0", "repair": TASK}
    named = refused(await desk.admit("t", version="1.0.0", call_id="call-other001"))
    assert named.error_type is ErrorType.UNAVAILABLE, "it asked for this version"


async def test_what_a_session_works_with_has_no_version_before_it(desk: "Desk") -> None:
    await repaired(desk, Meanwhile.PREVIOUS, "0.9.0")
    request = AdmitRequest(call=ToolCall(tool_id="t"), call_id="call-12345678", workflow_id="w", run_id="r", prefer_version="1.0.0")
    assert refused((await desk.admissions.admit(request)).admission).error_type is ErrorType.UNAVAILABLE
    stop = request.model_copy(update={"is_stop": True, "call_id": "call-87654321"})
    assert plan_of((await desk.admissions.admit(stop)).admission).version == "1.0.0"


async def test_without_a_version_before_that_can_be_called_they_are_refused(desk: "Desk") -> None:
    await repaired(desk, Meanwhile.PREVIOUS, "0.9.0")
    await desk.registry.deactivate("t", "0.9.0")
    assert refused(await desk.admit("t")).error_type is ErrorType.UNAVAILABLE


async def test_the_version_that_fails_may_serve_meanwhile(desk: "Desk") -> None:
    await repaired(desk, Meanwhile.SERVE)
    plan = plan_of(await desk.admit("t"))
    assert (plan.version, plan.instead_of) == ("1.0.0", None)


@pytest.mark.promise("quarantined-inputs")
async def test_an_input_in_whose_calls_the_process_ended_twice_is_rejected_and_others_are_served(desk: "Desk") -> None:
    (desk.root / "a.png").write_bytes(b"x")
    given: dict[str, JsonValue] = {"images": ["a.png"], "token": "hidden"}
    for number in (1, 2):
        plan = plan_of(await desk.admit("stitch", given, f"call-crash{number:03}"))
        error = {"type": "execution_error", "message": "Lost.", "details": {"outcome": "unknown", "tool_ended": "It ended."}}
        outcome = Finished.model_validate({"error": error, "started_at": AT})
        for _ in range(2):  # a settlement may be repeated
            await desk.settlements.settle(SettleRequest(plan=plan, outcome=outcome, workflow_id="w", run_id="r"))
    result = refused(await desk.admit("stitch", {**given, "spacing": 4}, "call-third001"))
    assert (result.error_type, reason_of(result)) == (ErrorType.REJECTED, QUARANTINED)
    asked = AdmitRequest(
        call=ToolCall(tool_id="stitch", params={**given, "spacing": 4}), call_id="call-stop0001", workflow_id="w", run_id="r", is_stop=True
    )
    assert plan_of((await desk.admissions.admit(asked)).admission).params["spacing"] == 4  # what was launched is stopped all the same
    (kept,) = await desk.quarantine.of_tool("stitch")
    assert kept.params == {"images": ["a.png"], "spacing": 4, "token": "***"}
    assert plan_of(await desk.admit("stitch", {**given, "spacing": 5}, "call-fourth01")).params["spacing"] == 5
    await desk.quarantine.lift("stitch")
    plan_of(await desk.admit("stitch", given, "call-fifth001"))


async def test_what_is_known_is_read_again_only_when_the_number_of_the_catalog_changes(database: Database) -> None:
    """Reading it does not count, so a tool without trouble costs no query."""
    tools = CachedTools(tool_registry(database), CatalogState(database))
    repairs, quarantine = ProductionRepairs(database), QuarantineTable(database)
    troubles = CachedTroubles(repairs, quarantine, tools)
    await tools.renew()
    assert await troubles.of("t", "1.0.0") is None
    assert await repairs.open(new())
    assert await troubles.of("t", "1.0.0") is None, "as of the last renewal"
    await tools.renew()
    assert await troubles.of("t", "1.0.0") == Trouble(TASK, Meanwhile.REFUSE, "0.9.0")
    assert await troubles.of("t", "0.9.0") is None
    assert len(input_of({})) == 64
