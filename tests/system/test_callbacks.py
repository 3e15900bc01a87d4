"""Callbacks of asynchronous calls to a real receiver, with retries until the receiver is there."""

import json
from collections.abc import Generator

import pytest
from pydantic import JsonValue

from tests.callbacks.receiver import Receiver, running_receiver
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.batches import BatchEnd
from toolagent.contracts.callbacks import CallbackState
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.http import Task
from toolagent.contracts.records import EventType

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def receiver() -> Generator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


def begin(service: ServiceProcess, url: str, tool_id: str, params: dict[str, JsonValue]) -> str:
    body = {"tool_id": tool_id, "params": params, "mode": "async", "callback_url": url}
    answer = service.http.post("/run_tool", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["task_id"]


def task_of(service: ServiceProcess, task_id: str) -> Task:
    return Task.model_validate_json(service.http.get(f"/tasks/{task_id}").content)


def state_of(service: ServiceProcess, task_id: str) -> CallbackState | None:
    callback = task_of(service, task_id).callback
    return callback.state if callback else None


def wait_for(service: ServiceProcess, task_id: str, state: CallbackState, seconds: float = 60) -> Task:
    wait_until(lambda: state_of(service, task_id) is state, f"the callback is {state.value}", seconds)
    return task_of(service, task_id)


def test_the_result_is_posted_and_the_task_says_so(service: ServiceProcess, receiver: Receiver) -> None:
    task_id = begin(service, f"{receiver.url}?token=hidden", "calculator", {"expression": "6 * 7"})
    task = wait_for(service, task_id, CallbackState.DELIVERED)
    (got,) = receiver.received
    told = json.loads(got.body)
    result = ToolResult.model_validate(told["data"])
    assert (told["type"], result.call_id, result.status) == ("call.ended", task_id, "success")
    assert result == task.result
    assert task.callback is not None
    assert (task.callback.attempts, task.callback.status_code, task.callback.event_id) == (1, 204, got.headers["webhook-id"])
    assert task.callback.origin == receiver.url.removesuffix("/told")
    assert task.events[-1].event_type is EventType.CALLBACK_DELIVERED
    assert "hidden" not in task.model_dump_json()


@pytest.mark.promise("callbacks-come")
def test_answers_of_500_are_tried_again_under_the_same_id(service: ServiceProcess, receiver: Receiver) -> None:
    receiver.answers = [500, 503]
    task_id = begin(service, receiver.url, "calculator", {"expression": "1 + 1"})
    task = wait_for(service, task_id, CallbackState.DELIVERED)
    assert task.callback is not None
    assert (task.callback.attempts, len(receiver.received)) == (3, 3)
    assert len({got.headers["webhook-id"] for got in receiver.received}) == 1


def test_a_receiver_that_refuses_for_good_is_left_in_peace(service: ServiceProcess, receiver: Receiver) -> None:
    receiver.answers = [410]
    task = wait_for(service, begin(service, receiver.url, "nowhere", {}), CallbackState.FAILED)
    assert task.callback is not None
    assert (task.callback.status_code, len(receiver.received)) == (410, 1)
    assert json.loads(receiver.received[0].body)["data"]["error_type"] == ErrorType.TOOL_NOT_FOUND
    assert task.events[-1].event_type is EventType.CALLBACK_FAILED


def test_a_cancelled_call_is_told_of_too(service: ServiceProcess, receiver: Receiver) -> None:
    task_id = begin(service, receiver.url, "versatile", {"mode": "sleep", "seconds": 60})
    wait_until(lambda: task_of(service, task_id).status.value == "running", "the call runs", 60)
    service.http.post(f"/tasks/{task_id}/cancel")
    wait_for(service, task_id, CallbackState.DELIVERED)
    assert json.loads(receiver.received[0].body)["data"]["error_type"] == ErrorType.CANCELLED


def test_a_batch_is_told_of_with_the_states_of_its_calls(service: ServiceProcess, receiver: Receiver) -> None:
    calls: list[JsonValue] = [{"tool_id": "calculator", "params": {"expression": "1"}}, {"tool_id": "nowhere", "params": {}}]
    answer = service.http.post("/run_tools", json={"calls": calls, "mode": "async", "callback_url": receiver.url})
    task = wait_for(service, answer.json()["task_id"], CallbackState.DELIVERED)
    told = json.loads(receiver.received[0].body)
    end = BatchEnd.model_validate(told["data"])
    assert (told["type"], end.batch_id, [call.state.value for call in end.calls]) == ("batch.ended", task.task_id, ["success", "error"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"callback_url": "http://10.0.0.1/"}, "10.0.0.1"),
        ({"callback_url": "http://169.254.169.254/"}, "TOOL_AGENT_CALLBACK_ALLOW"),
        ({"callback_url": "ftp://127.0.0.1/"}, "callback_url"),
        ({"callback_url": "http://user:pass@127.0.0.1/"}, "signed instead"),
        ({"callback_url": "http://127.0.0.1/", "mode": "sync"}, "mode: async"),
    ],
)
def test_a_callback_that_could_never_be_delivered_is_refused_at_once(service: ServiceProcess, changes: dict[str, str], told: str) -> None:
    answer = service.http.post("/run_tool", json={"tool_id": "calculator", "params": {"expression": "1"}, "mode": "async"} | changes)
    assert (answer.status_code, answer.json()["type"]) == (422, "invalid_request")
    assert answer.json()["errors"][0]["field"] == "callback_url"
    assert told in answer.text
