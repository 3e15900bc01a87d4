"""The decision about a call before it is made."""

import json
from typing import TYPE_CHECKING

import pytest
from pydantic import JsonValue

from engine.calls.records import record_of_refused
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.hosts import HostClaim, HostTable
from tests.validation.recursive import nested
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.matching import CompositeTool
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, TOO_LARGE, reason_of
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, Finished, Placement, PlaceRequest, SettleRequest

if TYPE_CHECKING:
    from tests.calls.conftest import Desk


def refused(admission: Admission) -> ToolResult:
    assert isinstance(admission, Answered)
    return admission.result


def admitted(admission: Admission) -> Admitted:
    assert isinstance(admission, Admitted), admission
    return admission


async def test_a_refusal_quotes_no_value_of_a_tool_that_takes_secrets(desk: "Desk") -> None:
    result = refused(await desk.admit("stitch", {"images": "misplaced-hunter2", "token": ["hunter2"]}))
    assert {issue.path for issue in result.validation_errors} >= {"$.images", "$.token"}
    assert "hunter2" not in result.model_dump_json()


@pytest.mark.promise("admitted-first")
async def test_defaults_are_filled_in_before_the_call(desk: "Desk") -> None:
    (desk.root / "a.png").write_bytes(b"x")
    plan = admitted(await desk.admit("stitch", {"images": ["a.png"]})).plan
    assert plan.params == {"images": ["a.png"], "spacing": 4}
    assert (plan.placement, plan.fast, plan.repeatable) == (Placement(queue="h1/default", host="h1"), False, False)


async def test_an_unknown_tool_is_answered_with_the_nearest_ids(desk: "Desk") -> None:
    result = refused(await desk.admit("stich"))
    assert result.error is not None
    create = {"method": "POST", "path": "/create_tool"}
    assert (result.error_type, result.error.details) == (ErrorType.TOOL_NOT_FOUND, {"nearest": ["stitch"], "create_tool": create})


async def test_an_unknown_tool_that_a_group_covers_is_answered_with_its_tools(desk: "Desk", database: Database) -> None:
    group = ToolGroup(group_id="sewing", name="Sewing", tool_ids=("stitch", "absent"), triggers=("LoadNeedle",))
    await GroupTable(database).replace([group])
    error = refused(await desk.admit("load_needle")).error
    assert error is not None
    assert isinstance(error.details, dict)
    composite = CompositeTool.model_validate(error.details["composite"])
    assert (composite.group_id, [tool.tool_id for tool in composite.base_tools]) == ("sewing", ["stitch"])


async def test_a_range_is_planned_as_the_version_it_means(desk: "Desk") -> None:
    admission = await desk.admit("pure", version="^1.0")
    assert isinstance(admission, Admitted)
    assert admission.plan.version == "1.0.0"


async def test_what_is_no_range_is_an_error_of_the_field_version(desk: "Desk") -> None:
    result = refused(await desk.admit("pure", version="latest"))
    assert (result.error_type, [issue.path for issue in result.validation_errors]) == (ErrorType.VALIDATION_ERROR, ["$.version"])


async def test_an_unknown_version_is_answered_with_the_active_one(desk: "Desk") -> None:
    result = refused(await desk.admit("pure", version="9.9.9"))
    assert result.error is not None
    assert (result.error_type, result.error.details) == (
        ErrorType.TOOL_NOT_FOUND,
        {"active_version": "1.0.0", "versions": ["1.0.0"]},
    )


@pytest.mark.promise("admitted-first")
async def test_every_wrong_parameter_is_listed_with_its_path(desk: "Desk") -> None:
    result = refused(await desk.admit("stitch", {"images": "a", "spacing": -1, "colour": "red"}))
    assert result.error_type is ErrorType.VALIDATION_ERROR
    found = {(issue.path, issue.keyword) for issue in result.validation_errors}
    assert found == {("$.images", "type"), ("$.spacing", "minimum"), ("$", "additionalProperties")}


async def test_a_missing_parameter_is_named(desk: "Desk") -> None:
    issues = refused(await desk.admit("stitch")).validation_errors
    assert [(issue.path, issue.keyword) for issue in issues] == [("$", "required")]


async def test_a_tool_with_a_schema_that_is_refused_today_is_called_within_limits(desk: "Desk") -> None:
    admitted(await desk.admit("dear", {"a": [[True]]}))
    result = refused(await desk.admit("dear", nested(18), "call-87654321"))
    assert (result.error_type, [issue.keyword for issue in result.validation_errors]) == (ErrorType.VALIDATION_ERROR, ["limit"])


@pytest.mark.parametrize(
    ("tool_id", "fields", "error_type"),
    [
        ("asleep", {}, ErrorType.UNAVAILABLE),
        ("taken_away", {}, ErrorType.TOOL_NOT_FOUND),
        ("asks", {}, ErrorType.PERMISSION_DENIED),
        ("homeless", {}, ErrorType.EXECUTOR_NOT_FOUND),
        ("boxed", {}, ErrorType.EXECUTOR_NOT_FOUND),
        ("pure", {"stream": True}, ErrorType.VALIDATION_ERROR),
    ],
)
@pytest.mark.promise("admitted-first")
async def test_tools_that_cannot_be_called_are_refused(
    desk: "Desk", tool_id: str, fields: dict[str, JsonValue], error_type: ErrorType
) -> None:
    assert refused(await desk.admit(tool_id, **fields)).error_type is error_type


async def test_parameters_may_not_be_too_large(desk: "Desk") -> None:
    result = refused(await desk.admit("pure", {"text": "長" * 1000}))
    assert (result.error_type, reason_of(result)) == (ErrorType.VALIDATION_ERROR, TOO_LARGE)


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ([0] * 600, {"reason": "too_many_values", "values": 603, "limit": 500}),
        (json.loads("[" * 195 + "]" * 195), {"reason": "too_many_levels", "levels": 196, "limit": 190}),
    ],
    ids=["values", "levels"],
)
async def test_parameters_may_not_hold_too_much(desk: "Desk", text: JsonValue, details: JsonValue) -> None:
    result = refused(await desk.admit("pure", {"text": text}))
    assert (result.error_type, result.error and result.error.details) == (ErrorType.VALIDATION_ERROR, details)


@pytest.mark.parametrize("path", ["../outside.png", "/etc/passwd", "link.png", "folder/../../outside.png", "a\x00b", "loop", "x" * 1000])
async def test_a_path_never_leaves_its_root(desk: "Desk", path: str) -> None:
    (desk.root.parent / "outside.png").write_bytes(b"secret")
    (desk.root / "link.png").symlink_to(desk.root.parent / "outside.png")
    (desk.root / "loop").symlink_to(desk.root / "loop")
    result = refused(await desk.admit("stitch", {"images": [path]}))
    assert result.error_type in {ErrorType.SECURITY_ERROR, ErrorType.VALIDATION_ERROR}
    assert result.error_type is ErrorType.SECURITY_ERROR or path in {"x" * 1000, "loop"}
    assert [issue.path for issue in result.validation_errors] == ["$.images[0]"]


@pytest.mark.parametrize("value", ["nothing.png", "file_" + "0" * 32, "."])
async def test_a_file_that_is_not_there_is_named(desk: "Desk", value: str) -> None:
    result = refused(await desk.admit("stitch", {"images": [value]}))
    assert result.error_type is ErrorType.VALIDATION_ERROR
    assert [issue.path for issue in result.validation_errors] == ["$.images[0]"]


@pytest.mark.promise("repeated-steps-are-harmless")
async def test_a_settled_call_is_answered_from_its_record_without_being_made_again(desk: "Desk") -> None:
    plan = admitted(await desk.admit("pure", {"a": 1})).plan
    result = await desk.settlements.settle(SettleRequest(plan=plan, outcome=Finished(output=1), workflow_id="w", run_id="r"))
    assert refused(await desk.admit("pure", {"a": 1})) == result


@pytest.mark.promise("a-key-is-not-reused")
async def test_another_call_under_the_same_id_is_a_conflict(desk: "Desk") -> None:
    plan = admitted(await desk.admit("pure", {"a": 1})).plan
    await desk.settlements.settle(SettleRequest(plan=plan, outcome=Finished(output=1), workflow_id="w", run_id="r"))
    result = refused(await desk.admit("pure", {"a": 2}))
    assert (result.error_type, reason_of(result)) == (ErrorType.REJECTED, IDEMPOTENCY_CONFLICT)


@pytest.mark.promise("host-affinity")
async def test_a_call_that_no_host_took_is_placed_where_somebody_lives(desk: "Desk") -> None:
    (desk.root / "a.png").write_bytes(b"x")
    plan = admitted(await desk.admit("stitch", {"images": ["a.png"]})).plan
    gone = plan.model_copy(update={"placement": Placement(queue="h0/default", host="h0")})
    assert await desk.admissions.place(PlaceRequest(plan=gone)) == plan.placement


@pytest.mark.promise("host-affinity")
async def test_a_call_that_its_session_binds_to_a_host_waits_there_while_that_is_alive(desk: "Desk", database: Database) -> None:
    """All slots of the host may be taken, but no other host has what the session launched."""
    (desk.root / "a.png").write_bytes(b"x")
    plan = admitted(await desk.admit("stitch", {"images": ["a.png"]})).plan
    there = plan.model_copy(update={"placement": Placement(queue="h0/default", host="h0")})
    assert (await desk.admissions.place(PlaceRequest(plan=there, prefer="h0"))).host == "h1"
    await HostTable(database, 3600.0).claim(HostClaim("h0", "h0", "h0", {"default": 1}))
    assert (await desk.admissions.place(PlaceRequest(plan=there, prefer="h0"))).host == "h0"
    assert (await desk.admissions.place(PlaceRequest(plan=there))).host == "h1"


async def test_a_refused_call_is_recorded_without_its_parameters(desk: "Desk") -> None:
    result = refused(await desk.admit("stitch", {"images": 1, "token": "sesame"}))
    record = await desk.calls.get("call-12345678")
    assert record is not None
    assert (record.result, record.params) == (result, {})


@pytest.mark.promise("never-twice")
@pytest.mark.parametrize("tool_id", ["asleep", "taken_away", "asks"])
async def test_a_call_that_was_sent_is_not_said_to_be_refused(desk: "Desk", tool_id: str) -> None:
    """Its process has died, and its tool or file may be gone when it is admitted again."""
    asked = AdmitRequest(call=ToolCall(tool_id=tool_id), call_id="call-12345678", workflow_id="w", run_id="r", is_new=True)
    assert await desk.calls.mark_sent(record_of_refused(asked))
    error = refused((await desk.admissions.admit(asked)).admission).error
    assert error is not None
    assert isinstance(error.details, dict)
    assert (error.type, error.details["sent"], error.details["outcome"]) == (ErrorType.EXECUTION_ERROR, True, "unknown")


@pytest.mark.promise("a-key-is-not-reused")
async def test_a_conflict_does_not_overwrite_the_call_the_key_belongs_to(desk: "Desk") -> None:
    plan = admitted(await desk.admit("pure", {"a": 1})).plan
    first = await desk.settlements.settle(SettleRequest(plan=plan, outcome=Finished(output=1), workflow_id="w", run_id="r"))
    await desk.admit("pure", {"a": 2})
    assert refused(await desk.admit("pure", {"a": 1})) == first


async def test_while_all_hosts_drain_a_new_call_is_refused_and_one_that_waits_waits_on(desk: "Desk", database: Database) -> None:
    waiting = admitted(await desk.admit("stitch", {"images": []})).plan
    hosts = HostTable(database, 3600.0)
    await hosts.claim(HostClaim("h1", "h1", "h1", {"default": 1}))
    await hosts.drain("h1")
    assert await desk.admissions.place(PlaceRequest(plan=waiting)) == waiting.placement
    for tool_id in ("stitch", "pure"):
        result = refused(await desk.admit(tool_id, {"images": []}, f"call-{tool_id:0>8}"))
        assert result.error is not None
        assert (result.error_type, result.error.details) == (ErrorType.UNAVAILABLE, {"sent": False, "draining": ["h1"]})
