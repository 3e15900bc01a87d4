"""Many calls in one request."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from api.security import BODY_SLACK, MAX_BATCH_BYTES
from tests.api.conftest import House
from toolagent.contracts.batches import MAX_BATCH_CALLS, BatchResult
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.http import Problem, Task
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, failed, reason_of
from toolagent.testing.fake_client import echo


def one(message: JsonValue, **more: JsonValue) -> dict[str, JsonValue]:
    return {"tool_id": "echo", "params": {"message": message}, **more}


def failing_on_request(call: ToolCall, call_id: str) -> ToolResult | None:
    if call.params["message"] == "wait":
        return None
    error = ToolError(type=ErrorType.EXECUTION_ERROR, message="asked for")
    return failed(call_id, call.tool_id, error, datetime.now(UTC)) if call.params["message"] == "fail" else echo(call, call_id)


async def test_the_results_are_in_order_and_the_status_is_200_though_one_failed(house: House) -> None:
    house.client.script = failing_on_request
    answer = await house.http.post("/run_tools", json={"calls": [one("a"), one("fail"), one(None)]})
    result = BatchResult.model_validate_json(answer.content)
    assert answer.status_code == 200
    assert answer.headers["X-Batch-Id"] == result.batch_id
    assert [done.result for done in result.results] == [{"message": "a"}, None, {"message": None}]
    assert (result.total, result.succeeded, result.failed) == (3, 2, 1)


async def test_an_async_batch_is_a_task_with_progress_and_its_calls_and_can_be_cancelled(house: House) -> None:
    house.client.script = failing_on_request
    body = {"calls": [one("a"), one("wait")], "mode": "async", "ordered": True}
    accepted = await house.http.post("/run_tools", json=body)
    batch_id = accepted.json()["task_id"]
    assert (accepted.status_code, accepted.headers["Location"]) == (202, f"/tasks/{batch_id}")
    begun = await house.http.get(f"/tasks/{batch_id}")
    assert Task.model_validate_json(begun.content).status is TaskState.RUNNING
    while (task := Task.model_validate_json((await house.http.get(f"/tasks/{batch_id}")).content)).progress != "1 of 2":
        assert task.status is TaskState.RUNNING
    assert (await house.http.get(f"/tasks/{task.calls[0].call_id}")).json()["result"]["result"] == {"message": "a"}
    assert (await house.http.post(f"/tasks/{batch_id}/cancel")).status_code == 202
    await house.client.batch_end(batch_id)
    ended = Task.model_validate_json((await house.http.get(f"/tasks/{batch_id}")).content)
    assert (ended.status, ended.progress) == (TaskState.CANCELLED, "2 of 2")


async def test_one_key_is_one_batch_and_another_batch_under_it_is_a_conflict(house: House) -> None:
    headers = {"Idempotency-Key": "k"}
    first = await house.http.post("/run_tools", json={"calls": [one("a")]}, headers=headers)
    again = await house.http.post("/run_tools", json={"calls": [one("a")], "idempotency_key": "k"})
    other = await house.http.post("/run_tools", json={"calls": [one("b")]}, headers=headers)
    differing = await house.http.post("/run_tools", json={"calls": [one("a")], "idempotency_key": "l"}, headers=headers)
    assert first.json() == again.json()
    assert (other.status_code, reason_of(ToolResult.model_validate_json(other.content))) == (409, IDEMPOTENCY_CONFLICT)
    assert (differing.status_code, differing.json()["errors"][0]["field"]) == (422, "Idempotency-Key")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "calls"),
        ({"calls": []}, "calls"),
        ({"calls": [one("a")] * (MAX_BATCH_CALLS + 1)}, "calls"),
        ({"calls": [one("a", mode="async")]}, "calls.0.mode"),
        ({"calls": [one("a"), {"tool_id": "Not An Id"}]}, "calls.1.tool_id"),
        ({"calls": [one("a")], "ordered": "yes"}, "ordered"),
        ({"calls": [one("a")], "parallel": True}, "parallel"),
        ({"calls": {"0": one("a")}}, "calls"),
    ],
)
async def test_a_body_that_is_no_batch_names_the_field(house: House, body: JsonValue, field: str) -> None:
    answer = await house.http.post("/run_tools", json=body)
    problem = Problem.model_validate_json(answer.content)
    assert (answer.status_code, problem.errors[0].field) == (422, field)
    assert house.client.calls == {}


async def test_a_batch_that_is_too_large_is_refused_with_the_way_out(house: House) -> None:
    whole = await house.http.post("/run_tools", content=b" " * (MAX_BATCH_BYTES + BODY_SLACK + 1))
    single = await house.http.post("/run_tools", json={"calls": [one("a"), one("x" * 80_000)]})
    for answer in (whole, single):
        assert answer.status_code == 413
        assert "POST /files" in answer.json()["detail"]
    assert house.client.calls == {}
