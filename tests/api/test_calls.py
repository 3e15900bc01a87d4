"""POST /run_tool and POST /select_tool."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from tests.api.conftest import House
from toolagent.contracts.calls import Caller, CallMode, ErrorType, ToolCall, ToolError, ToolResult
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, TOO_LARGE, failed

STATUSES = {
    ErrorType.TOOL_NOT_FOUND: 404,
    ErrorType.VALIDATION_ERROR: 422,
    ErrorType.PERMISSION_DENIED: 403,
    ErrorType.SECURITY_ERROR: 403,
    ErrorType.BUDGET_EXCEEDED: 402,
    ErrorType.REJECTED: 429,
    ErrorType.CANCELLED: 409,
    ErrorType.TIMEOUT: 504,
    ErrorType.EXECUTION_ERROR: 502,
    ErrorType.DEPENDENCY_ERROR: 502,
    ErrorType.OUTPUT_VALIDATION_ERROR: 502,
    ErrorType.EXECUTOR_NOT_FOUND: 501,
    ErrorType.UNAVAILABLE: 503,
}
"""The statuses, written down a second time on purpose."""


def fail_with(house: House, error_type: ErrorType, reason: str | None = None) -> None:
    error = ToolError(type=error_type, message="No.", details={"reason": reason} if reason else None)
    house.client.script = lambda call, call_id: failed(call_id, call.tool_id, error, datetime.now(UTC))


@pytest.mark.promise("answers-are-results")
async def test_a_call_is_answered_with_its_result_and_its_id(house: House) -> None:
    answer = await house.http.post("/run_tool", json={"tool_id": "echo", "params": {"text": "你好"}})
    result = ToolResult.model_validate_json(answer.content)
    assert answer.status_code == 200
    assert (result.status, result.result) == ("success", {"text": "你好"})
    assert house.client.calls == {answer.headers["x-call-id"]: ToolCall(tool_id="echo", params={"text": "你好"})}
    assert result.call_id == answer.headers["x-call-id"]


@pytest.mark.parametrize("path", ["/run_tool", "/select_tool"])
async def test_capital_letters_of_an_id_do_not_count(house: House, path: str) -> None:
    """Agents may name a ComfyUI node, such as LoadImage, for a tool of a group."""
    assert (await house.http.post(path, json={"tool_id": "LoadImage"})).status_code == 200
    assert [call.tool_id for call in house.client.calls.values()] == ["loadimage"]
    assert (await house.http.post(path, json={"tool_id": "Load Image"})).status_code == 422


async def test_every_field_of_the_body_reaches_the_call(house: House) -> None:
    caller = {"caller_id": "a", "caller_type": "direct", "conversation_id": "c", "workflow_id": "w", "node_id": "n", "variables": {"x": 1}}
    body = {"tool_id": "ns:echo", "params": {"a": [1]}, "version": "1.0.0", "timeout_s": 3, "caller": caller, "stream": True, "priority": 1}
    answer = await house.http.post("/run_tool", json={**body, "mode": "sync", "idempotency_key": "k"})
    assert answer.status_code == 200
    (call,) = house.client.calls.values()
    assert call == ToolCall(
        tool_id="ns:echo",
        params={"a": [1]},
        version="1.0.0",
        mode=CallMode.SYNC,
        timeout_s=3,
        idempotency_key="k",
        caller=Caller.model_validate(caller),
        stream=True,
        priority=1,
    )


@pytest.mark.promise("errors-are-a-closed-set")
def test_the_table_of_statuses_is_complete() -> None:
    assert STATUSES.keys() == set(ErrorType)


@pytest.mark.parametrize("path", ["/run_tool", "/select_tool"])
@pytest.mark.parametrize("error_type", ErrorType)
@pytest.mark.promise("errors-are-a-closed-set")
async def test_each_error_type_has_its_status(house: House, error_type: ErrorType, path: str) -> None:
    fail_with(house, error_type)
    answer = await house.http.post(path, json={"tool_id": "echo"})
    assert answer.status_code == STATUSES[error_type]
    assert answer.json()["error"]["type"] == error_type
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers.get("retry-after") == ("1" if error_type is ErrorType.UNAVAILABLE else None)
    assert answer.headers["x-call-id"] in house.client.calls


@pytest.mark.parametrize(
    ("error_type", "reason", "status"),
    [
        (ErrorType.VALIDATION_ERROR, TOO_LARGE, 413),
        (ErrorType.REJECTED, IDEMPOTENCY_CONFLICT, 409),
        (ErrorType.REJECTED, "something else", 429),
        (ErrorType.TIMEOUT, TOO_LARGE, 504),
    ],
)
async def test_some_reasons_have_a_status_of_their_own(house: House, error_type: ErrorType, reason: str, status: int) -> None:
    fail_with(house, error_type, reason)
    assert (await house.http.post("/run_tool", json={"tool_id": "echo"})).status_code == status


async def test_select_tool_answers_in_the_specified_shape(house: House) -> None:
    answer = await house.http.post("/select_tool", json={"tool_id": "echo", "params": {"a": 1}, "stream": False})
    assert answer.json() == {"status": "success", "result": {"a": 1}, "error": None}
    assert answer.headers["x-call-id"] in house.client.calls
    fail_with(house, ErrorType.TIMEOUT)
    answer = await house.http.post("/select_tool", json={"tool_id": "echo"})
    assert answer.json() == {"status": "error", "result": None, "error": {"type": "timeout", "message": "No.", "details": None}}


async def test_async_answers_at_once_with_where_to_ask(house: House) -> None:
    house.client.script = lambda _call, _call_id: None
    answer = await house.http.post("/run_tool", json={"tool_id": "echo", "mode": "async"})
    (call_id,) = house.client.calls
    assert answer.status_code == 202
    assert answer.json() == {"task_id": call_id, "status": "pending"}
    assert answer.headers["location"] == f"/tasks/{call_id}"


@pytest.mark.parametrize("path", ["/run_tool", "/select_tool"])
async def test_while_temporal_is_away_the_answer_is_a_result_to_come_back_for(house: House, path: str) -> None:
    house.client.away = True
    answer = await house.http.post(path, json={"tool_id": "echo"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["error"]["type"] == "unavailable"
    assert answer.headers["x-call-id"].startswith("call-")


async def test_an_async_call_that_may_have_been_taken_says_its_id(house: House) -> None:
    house.client.away = True
    answer = await house.http.post("/run_tool", json={"tool_id": "echo", "mode": "async"})
    assert answer.status_code == 503
    assert answer.json()["call_id"] == answer.headers["x-call-id"] != ""


async def test_select_tool_takes_the_key_and_the_id_in_headers(house: House) -> None:
    for _ in range(2):
        answer = await house.http.post("/select_tool", json={"tool_id": "echo"}, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.headers["x-call-id"]) == (200, call_id_for_key(None, "k"))
    other = await house.http.post("/select_tool", json={"tool_id": "echo", "params": {"a": 1}}, headers={"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["error"]["details"]) == (409, {"reason": IDEMPOTENCY_CONFLICT})
    chosen = await house.http.post("/select_tool", json={"tool_id": "echo"}, headers={"X-Call-Id": "call-12345678"})
    assert chosen.headers["x-call-id"] == "call-12345678"
    assert list(house.client.calls) == [call_id_for_key(None, "k"), "call-12345678"]


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"Idempotency-Key": ""}, "Idempotency-Key"),
        ({"X-Call-Id": "mine"}, "X-Call-Id"),
        ({"X-Call-Id": "call-12345678", "Idempotency-Key": "k"}, "X-Call-Id"),
    ],
)
async def test_select_tool_refuses_the_same_headers(house: House, headers: dict[str, str], field: str) -> None:
    answer = await house.http.post("/select_tool", json={"tool_id": "echo"}, headers=headers)
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (422, [field])
    assert house.client.calls == {}


async def test_the_header_is_the_bodys_idempotency_key(house: House) -> None:
    first = await house.http.post("/run_tool", json={"tool_id": "echo"}, headers={"Idempotency-Key": "k"})
    second = await house.http.post("/run_tool", json={"tool_id": "echo", "idempotency_key": "k"})
    both = await house.http.post("/run_tool", json={"tool_id": "echo", "idempotency_key": "k"}, headers={"Idempotency-Key": "k"})
    assert list(house.client.calls) == [call_id_for_key(None, "k")]
    assert first.content == second.content == both.content


async def test_the_same_key_for_another_call_is_a_conflict(house: House) -> None:
    for mode, status in (("sync", 200), ("async", 202)):
        headers = {"Idempotency-Key": mode}
        assert (await house.http.post("/run_tool", json={"tool_id": "echo", "mode": mode}, headers=headers)).status_code == status
        other = await house.http.post("/run_tool", json={"tool_id": "echo", "mode": mode, "params": {"a": 1}}, headers=headers)
        assert (other.status_code, other.json()["error"]["details"]) == (409, {"reason": IDEMPOTENCY_CONFLICT})


@pytest.mark.promise("own-call-id")
async def test_without_a_key_the_caller_may_choose_the_id(house: House) -> None:
    headers = {"X-Call-Id": "call-12345678"}
    answer = await house.http.post("/run_tool", json={"tool_id": "echo"}, headers=headers)
    assert (answer.headers["x-call-id"], list(house.client.calls)) == ("call-12345678", ["call-12345678"])


@pytest.mark.parametrize(
    ("body", "headers", "field"),
    [
        ({"idempotency_key": "a"}, {"Idempotency-Key": "b"}, "Idempotency-Key"),
        ({"idempotency_key": ""}, {"Idempotency-Key": "b"}, "idempotency_key"),
        ({}, {"Idempotency-Key": ""}, "Idempotency-Key"),
        ({}, {"Idempotency-Key": "k" * 256}, "Idempotency-Key"),
        ({}, {"X-Call-Id": "mine"}, "X-Call-Id"),
        ({}, {"X-Call-Id": "call-12345678", "Idempotency-Key": "k"}, "X-Call-Id"),
        ({"tool": "x"}, {}, "tool"),
        ({"caller": {"callerid": "x"}}, {}, "caller.callerid"),
        ({"caller": {"caller_id": "a\u0000b"}}, {}, "caller.caller_id"),
        ({"caller": "me"}, {}, "caller"),
        ({"tool_id": "Not An Id"}, {}, "tool_id"),
        ({"tool_id": "echo\n"}, {}, "tool_id"),
        ({"tool_id": None}, {}, "tool_id"),
        ({"params": []}, {}, "params"),
        ({"params": None}, {}, "params"),
        ({"version": 1}, {}, "version"),
        ({"version": "1\u0000"}, {}, "version"),
        ({"mode": "later"}, {}, "mode"),
        ({"timeout_s": 0}, {}, "timeout_s"),
        ({"timeout_s": "5"}, {}, "timeout_s"),
        ({"timeout_s": 86_401}, {}, "timeout_s"),
        ({"stream": "yes"}, {}, "stream"),
        ({"priority": 6}, {}, "priority"),
        ({"priority": 1.5}, {}, "priority"),
    ],
)
async def test_what_is_wrong_with_a_body_is_named_and_nothing_is_called(
    house: House, body: dict[str, JsonValue], headers: dict[str, str], field: str
) -> None:
    answer = await house.http.post("/run_tool", json={"tool_id": "echo", **body}, headers=headers)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, problem["status"], problem["type"]) == (422, 422, "invalid_request")
    assert [error["field"] for error in problem["errors"]] == [field]
    assert house.client.calls == {}


async def test_a_missing_tool_id_is_named(house: House) -> None:
    for path in ("/run_tool", "/select_tool"):
        answer = await house.http.post(path, json={"params": {}})
        assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (422, ["tool_id"])
