"""Calls are followed and cancelled by their task id."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from tests.api.conftest import House
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.http import Task
from toolagent.contracts.records import CallRecord, Event, EventType
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.results import failed, succeeded

AT = datetime(2026, 3, 26, 10, 30, tzinfo=UTC)
RECORD = CallRecord(call_id="call-12345678", tool_id="echo", version="1.0.0", fingerprint="f", workflow_id="w", run_id="r", created_at=AT)
SUCCESS = succeeded("call-12345678", "echo", {"a": 1}, AT, execution_time=0.5, metadata={})
FAILURE = failed("call-12345678", "echo", ToolError(type=ErrorType.TIMEOUT, message="Late."), AT)
CANCELLED = failed("call-12345678", "echo", ToolError(type=ErrorType.CANCELLED, message="No more."), AT)
ENDINGS = [(SUCCESS, TaskState.COMPLETED), (FAILURE, TaskState.FAILED), (CANCELLED, TaskState.CANCELLED)]
STARTED = Event(event_id="call-12345678:started", event_type=EventType.EXECUTION_STARTED, tool_id="echo", call_id="call-12345678", at=AT)


def keep_going(house: House) -> None:
    house.client.script = lambda _call, _call_id: None


async def task(house: House, task_id: str = "call-12345678") -> Task:
    answer = await house.http.get(f"/tasks/{task_id}")
    assert answer.status_code == 200
    return Task.model_validate_json(answer.content)


@pytest.mark.parametrize(("result", "state"), ENDINGS)
async def test_a_task_ends_as_its_result_says(house: House, result: ToolResult, state: TaskState) -> None:
    keep_going(house)
    await house.client.start(ToolCall(tool_id="echo"), "call-12345678")
    assert ((await task(house)).status, (await task(house)).result) == (TaskState.RUNNING, None)
    house.client.finish("call-12345678", result)
    assert ((await task(house)).status, (await task(house)).result) == (state, result)


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize(("result", "state"), ENDINGS)
async def test_a_call_that_temporal_cannot_tell_of_is_told_from_its_record(
    house: House, result: ToolResult, state: TaskState, away: bool
) -> None:
    house.client.away = away
    await house.calls.settle(RECORD, result, (STARTED,))
    found = await task(house)
    assert (found.task_id, found.status, found.tool_id, found.started_at, found.result) == ("call-12345678", state, "echo", AT, result)
    assert found.ended_at is not None
    assert found.events == (STARTED,)


async def test_a_call_that_was_sent_and_forgotten_has_an_honest_outcome(house: House) -> None:
    await house.calls.mark_sent(RECORD)
    found = await task(house)
    assert found.status is TaskState.FAILED
    assert found.result is not None
    assert found.result.error is not None
    assert (found.result.error.type, found.result.error.details) == (ErrorType.EXECUTION_ERROR, {"outcome": "unknown"})


@pytest.mark.parametrize(
    "task_id", ["call-00000000", "nothing", "control-12345678", "call-12345678%0A", "call-1234567%00", "call-" + "x" * 500]
)
async def test_an_unknown_task_is_a_problem(house: House, task_id: str) -> None:
    for answer in (await house.http.get(f"/tasks/{task_id}"), await house.http.post(f"/tasks/{task_id}/cancel")):
        assert (answer.status_code, answer.json()["type"]) == (404, "task_not_found")


async def test_while_temporal_is_away_an_unrecorded_task_is_unavailable(house: House) -> None:
    house.client.away = True
    for answer in (await house.http.get("/tasks/call-12345678"), await house.http.post("/tasks/call-12345678/cancel")):
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_a_running_call_is_cancelled(house: House) -> None:
    keep_going(house)
    await house.client.start(ToolCall(tool_id="echo"), "call-12345678")
    answer = await house.http.post("/tasks/call-12345678/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
    assert (await task(house)).status is TaskState.CANCELLED


async def test_a_call_that_has_ended_stays_as_it_is(house: House) -> None:
    await house.client.start(ToolCall(tool_id="echo"), "call-12345678")
    answer = await house.http.post("/tasks/call-12345678/cancel")
    status: JsonValue = answer.json()["status"]
    assert (answer.status_code, status) == (200, "completed")


FOREIGN = RECORD.model_copy(update={"workflow_id": "my-call"})


async def test_a_call_that_goes_on_under_another_workflow_id_is_not_lost(house: House) -> None:
    keep_going(house)
    await house.calls.mark_sent(FOREIGN)
    await house.client.start(ToolCall(tool_id="echo"), "my-call")
    found = await task(house)
    assert (found.task_id, found.status, found.result) == ("call-12345678", TaskState.RUNNING, None)
    house.client.finish("my-call", SUCCESS)
    assert ((await task(house)).status, (await task(house)).result) == (TaskState.COMPLETED, SUCCESS)


async def test_a_call_under_another_workflow_id_is_cancelled(house: House) -> None:
    keep_going(house)
    await house.calls.mark_sent(FOREIGN)
    await house.client.start(ToolCall(tool_id="echo"), "my-call")
    answer = await house.http.post("/tasks/call-12345678/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")


async def test_a_call_that_was_sent_is_running_also_while_it_waits_for_another_host(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def waiting(call_id: str, _workflow_id: str | None = None) -> TaskView:
        return TaskView(task_id=call_id, status=TaskState.PENDING)

    monkeypatch.setattr(house.client, "task", waiting)
    assert (await task(house)).status is TaskState.PENDING
    await house.calls.mark_sent(RECORD)
    assert (await task(house)).status is TaskState.RUNNING


async def test_another_call_under_a_settled_calls_workflow_id_is_left_alone(house: House) -> None:
    keep_going(house)
    await house.calls.settle(FOREIGN, SUCCESS, ())
    await house.client.start(ToolCall(tool_id="echo"), "my-call")
    answer = await house.http.post("/tasks/call-12345678/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")
    running = await house.client.task("my-call")
    assert running is not None
    assert running.status is TaskState.RUNNING


async def test_a_settled_call_looks_the_same_before_and_after_its_workflow_ends(house: House) -> None:
    keep_going(house)
    await house.client.start(ToolCall(tool_id="echo"), "call-12345678")
    await house.calls.settle(RECORD, SUCCESS, (STARTED,))
    before = await task(house)
    house.client.finish("call-12345678", SUCCESS)
    assert await task(house) == before
    assert before.started_at == AT
