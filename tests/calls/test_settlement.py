"""The settlement of calls."""

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pydantic import JsonValue

from engine.calls import records
from engine.calls.endings import misfit_of
from engine.calls.records import record_of
from engine.store.database import Database
from engine.store.events import EventTable
from tests.calls.test_admission import admitted
from tests.validation.recursive import nested
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import EventType
from toolagent.core.schemas import MASK, mask_secrets
from toolagent_service.contracts.steps import Admitted, CallPlan, Finished, SettleRequest

if TYPE_CHECKING:
    from tests.calls.conftest import Desk

AT = datetime(2026, 11, 21, tzinfo=UTC)


async def stitch(desk: "Desk") -> CallPlan:
    (desk.root / "a.png").write_bytes(b"x")
    admission = await desk.admit("stitch", {"images": ["a.png"], "token": "sesame"})
    assert isinstance(admission, Admitted)
    return admission.plan


async def test_an_output_that_fits_is_a_success(desk: "Desk") -> None:
    outcome = Finished(output={"image": "file_1"}, execution_time=0.5, host="h1", active_source=0)
    result = await desk.settlements.settle(SettleRequest(plan=await stitch(desk), outcome=outcome, workflow_id="w", run_id="r"))
    assert (result.status, result.result, result.execution_time) == ("success", {"image": "file_1"}, 0.5)
    assert result.metadata == {"version": "1.0.0", "host": "h1", "active_source": 0, "fast": False, "way": "workflow"}


async def test_what_a_tool_leaves_behind_is_told_and_counts_against_it_and_its_answer_stands(desk: "Desk", database: Database) -> None:
    outcome = Finished(output={"image": "file_1"}, started_at=AT, left_behind="A folder stays.")
    result = await desk.settlements.settle(SettleRequest(plan=await stitch(desk), outcome=outcome, workflow_id="w", run_id="r"))
    assert (result.status, result.metadata["left_behind"]) == ("success", "A folder stays.")
    alert = await EventTable(database).latest_alert(result.tool_id)
    assert alert is not None
    assert (alert.call_id, alert.details) == (result.call_id, {"error": "A folder stays."})


@pytest.mark.promise("settled-last")
async def test_an_output_that_breaks_its_schema_is_an_error_that_says_the_tool_ran(desk: "Desk") -> None:
    result = await desk.settlements.settle(
        SettleRequest(plan=await stitch(desk), outcome=Finished(output={"picture": 1}), workflow_id="w", run_id="r")
    )
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.OUTPUT_VALIDATION_ERROR, {"outcome": "executed"})
    assert [issue.path for issue in result.validation_errors] == ["$"]


async def test_an_output_that_takes_too_long_to_check_is_said_to_and_that_the_tool_ran(desk: "Desk") -> None:
    plan = admitted(await desk.admit("dear")).plan
    result = await desk.settlements.settle(SettleRequest(plan=plan, outcome=Finished(output=nested(18)), workflow_id="w", run_id="r"))
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.OUTPUT_VALIDATION_ERROR, {"outcome": "executed", "output": nested(18)})
    assert [issue.keyword for issue in result.validation_errors] == ["limit"]


@pytest.mark.parametrize("output", ["x" * 20_000, nested(120)], ids=["large", "deep"])
async def test_a_wrong_output_that_is_large_or_deep_is_not_told(output: JsonValue) -> None:
    misfit = await misfit_of(ToolManifest(tool_id="t", name="T", output_schema={"type": "integer"}), output)
    assert misfit is not None
    assert misfit.error.details == {"outcome": "executed"}


@pytest.mark.parametrize(("tool_id", "output", "kind"), [("giving", {"pin": 7}, "string"), ("given", {"echo": "sesame"}, "integer")])
async def test_a_wrong_output_of_a_tool_with_secrets_is_not_told(desk: "Desk", tool_id: str, output: JsonValue, kind: str) -> None:
    plan = admitted(await desk.admit(tool_id)).plan
    outcome = Finished(output=output, shown={"structured": True, "content": [{"type": "text", "text": "It is sesame."}]})
    result = await desk.settlements.settle(SettleRequest(plan=plan, outcome=outcome, workflow_id="w", run_id="r"))
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.OUTPUT_VALIDATION_ERROR, {"outcome": "executed"})
    assert [issue.message for issue in result.validation_errors] == [f'*** is not of type "{kind}"']
    assert "sesame" not in result.model_dump_json()


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ({"people": {"hunter2": {"a.b": ["x", 1]}}}, "$.people.***.a.b[1]"),
        ({"people": {"a.hunter2[0]\nc": {"a.b": [1]}}}, "$.people.***.******.a.b[0]"),
        ({"people": {"." * 1_000_000: {"a.b": [1]}}}, f"$.people{'.***' * 292}***"),
        ({"people": 1}, "$.people"),
        ([], "$"),
    ],
)
async def test_the_path_of_a_fault_has_no_names_but_those_of_the_schema(output: JsonValue, path: str) -> None:
    listed: JsonSchema = {"properties": {"a.b": {"items": {"type": "string"}}}}
    schema: JsonSchema = {"type": "object", "properties": {"people": {"type": "object", "additionalProperties": listed}}}
    secret: JsonSchema = {"properties": {"pin": {"writeOnly": True}}}
    misfit = await misfit_of(ToolManifest(tool_id="t", name="T", input_schema=secret, output_schema=schema), output)
    assert misfit is not None
    assert [issue.path for issue in misfit.issues] == [path]


@pytest.mark.promise("failures-are-data")
async def test_the_tools_error_is_kept(desk: "Desk") -> None:
    error = ToolError(type=ErrorType.TIMEOUT, message="too slow", details={"outcome": "unknown"})
    outcome = Finished(error=error, started_at=AT)
    result = await desk.settlements.settle(SettleRequest(plan=await stitch(desk), outcome=outcome, workflow_id="w", run_id="r"))
    assert (result.status, result.error, result.error_type) == ("error", error, ErrorType.TIMEOUT)


@pytest.mark.parametrize("kind", [ErrorType.CANCELLED, ErrorType.UNAVAILABLE, ErrorType.EXECUTION_ERROR])
@pytest.mark.promise("never-twice")
async def test_a_call_that_an_earlier_attempt_sent_never_ends_as_not_sent(desk: "Desk", kind: ErrorType) -> None:
    plan = await stitch(desk)
    await desk.calls.mark_sent(await record_of(plan, None, "w", "r"))
    outcome = Finished(error=ToolError(type=kind, message="Nobody took it."))
    result = await desk.settlements.settle(SettleRequest(plan=plan, outcome=outcome, workflow_id="w", run_id="r"))
    assert result.error is not None
    assert result.error.details == {"sent": True, "outcome": "unknown"}
    assert result.error_type is (ErrorType.CANCELLED if kind is ErrorType.CANCELLED else ErrorType.EXECUTION_ERROR)


async def test_a_call_that_no_attempt_sent_may_be_made_again(desk: "Desk") -> None:
    error = ToolError(type=ErrorType.EXECUTION_ERROR, message="The database was away.", details={"outcome": "unknown"})
    request = SettleRequest(plan=await stitch(desk), outcome=Finished(error=error), workflow_id="w", run_id="r")
    result = await desk.settlements.settle(request)
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.UNAVAILABLE, {"sent": False})


async def test_only_a_call_that_was_sent_has_started(desk: "Desk", database: Database) -> None:
    events = EventTable(database)
    plan = await stitch(desk)
    error = ToolError(type=ErrorType.UNAVAILABLE, message="Nobody took it.")
    await desk.settlements.settle(SettleRequest(plan=plan, outcome=Finished(error=error), workflow_id="w", run_id="r"))
    assert [event.event_type for event in await events.of_call(plan.call_id)] == [EventType.EXECUTION_FAILED]
    sent = plan.model_copy(update={"call_id": "call-87654321"})
    done = Finished(output={"image": "file_1"}, started_at=AT)
    await desk.settlements.settle(SettleRequest(plan=sent, outcome=done, workflow_id="w", run_id="r"))
    assert [event.event_type for event in await events.of_call(sent.call_id)] == [
        EventType.EXECUTION_STARTED,
        EventType.EXECUTION_COMPLETED,
    ]


async def test_secrets_do_not_reach_the_record(desk: "Desk") -> None:
    plan = await stitch(desk)
    await desk.settlements.settle(SettleRequest(plan=plan, outcome=Finished(), workflow_id="w", run_id="r"))
    record = await desk.calls.get(plan.call_id)
    assert record is not None
    assert record.params["token"] == MASK


async def test_many_parameters_are_masked_beside_the_event_loop(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def seen(schema: JsonSchema, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
        threads.append(threading.current_thread())
        return mask_secrets(schema, params)

    monkeypatch.setattr(records, "mask_secrets", seen)
    manifest = ToolManifest(tool_id="t", name="T", input_schema={"patternProperties": {"^x": {"writeOnly": True}}})
    for many, params in ((False, {"x": 1}), (True, {f"x{number}": 1 for number in range(5_000)})):
        plan = (await stitch(desk)).model_copy(update={"params": params})
        record = await record_of(plan, manifest, "w", "r")
        assert [*record.params.values()] == [MASK] * len(params)
        assert (threads.pop() is not threading.current_thread()) == many
