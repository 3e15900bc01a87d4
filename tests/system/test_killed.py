"""After `kill -9` no process is left, no effect happens twice, and each accepted call has a result."""

import os
import signal
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.network.ports import free_port
from tests.callbacks.receiver import Received, running_receiver
from tests.system.effects import count_of, own_effects, wait_for_effect
from tests.system.leftovers import is_alive, processes_of
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.batches import BatchResult
from toolagent.contracts.callbacks import CallbackState
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.http import Task
from toolagent.contracts.tasks import TaskState, TaskView

pytestmark = pytest.mark.timeout(300)

_ANNOUNCED: dict[str, JsonValue] = {"tool_id": "calculator", "params": {"expression": "6 * 7"}}


@dataclass(frozen=True, slots=True)
class Aftermath:
    """The processes before, those after the kill, and the ends of the calls after a restart."""

    effects: Path
    daemon: int
    before: dict[int, str]
    left: dict[int, str]
    after_restart: dict[int, str]
    tasks: dict[str, TaskView]
    batch: Task
    repeated: BatchResult
    announced: Task
    received: list[Received]

    def result(self, name: str) -> ToolResult:
        result = self.tasks[name].result
        assert result is not None
        return result


@pytest.fixture(scope="module", params=[pytest.param("the service", marks=pytest.mark.long), "everything"])
def aftermath(request: pytest.FixtureRequest, catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Aftermath]:
    folder = tmp_path_factory.mktemp("killed")
    service = ServiceProcess(folder, catalog, CALLBACK_ALLOW="127.0.0.1", SECRET_CALLBACK="s3cret")  # noqa: S106
    service.start()
    try:
        yield _kill_and_restart(service, own_effects(catalog), everything=request.param == "everything")
    finally:
        service.end()
        service.wait_until_nothing_is_left()


def _kill_and_restart(service: ServiceProcess, effects: Path, *, everything: bool) -> Aftermath:
    spawned = service.ended_task(service.begin("versatile", {"mode": "spawn", "leave": True})).result
    assert spawned is not None
    assert spawned.status == "success"
    # The tool knows it by a number of its sandbox.
    (daemon,) = [pid for pid, command in processes_of(service.state).items() if "signal.pause()" in command]
    assert is_alive(daemon)
    go_on = effects.with_name("go on")
    calls = {name: service.begin(tool_id, params) for name, (tool_id, params) in _calls(effects, go_on).items()}
    batch, port = _batch(effects, go_on), free_port()
    batch_id = service.http.post("/run_tools", json=batch | {"mode": "async"}).raise_for_status().json()["task_id"]
    # Nobody listens yet: the delivery waits for its next attempt when everything is killed.
    announced = {**_ANNOUNCED, "mode": "async", "callback_url": f"http://127.0.0.1:{port}/told"}
    announced_id = service.http.post("/run_tool", json=announced).raise_for_status().json()["task_id"]
    for name in ("once", "again", "batched"):
        wait_for_effect(effects, name)
    wait_until(lambda: _task(service, batch_id).progress == "1 of 3", "the first call of the batch has ended")
    wait_until(lambda: _attempts(_task(service, announced_id)), "an attempt was made to deliver the callback")
    before = processes_of(service.state)
    if everything:
        # The guardian too: only the next start is left to clean up after this.
        for pid in (pid for pid, command in before.items() if "start-dev" in command or "guardian" in command):
            os.kill(pid, signal.SIGKILL)
    service.kill()
    go_on.touch()
    left = before if everything else _what_stays(before)
    with running_receiver(port) as receiver:
        service.start()
        after_restart = _what_stays(before)
        tasks = {name: service.ended_task(call_id, 90) for name, call_id in calls.items()}
        ended = wait_until(lambda: one if (one := _task(service, batch_id)).ended_at else None, "the batch has ended", 90)
        repeated = BatchResult.model_validate_json(service.http.post("/run_tools", json=batch).content)
        told = wait_until(lambda: one if _is_delivered(one := _task(service, announced_id)) else None, "the callback is delivered", 90)
        return Aftermath(effects, daemon, before, left, after_restart, tasks, ended, repeated, told, [*receiver.received])


def _task(service: ServiceProcess, task_id: str) -> Task:
    return Task.model_validate_json(service.http.get(f"/tasks/{task_id}").content)


def _attempts(task: Task) -> int:
    return task.callback.attempts if task.callback else 0


def _is_delivered(task: Task) -> bool:
    return task.callback is not None and task.callback.state is CallbackState.DELIVERED


def _batch(effects: Path, go_on: Path) -> dict[str, JsonValue]:
    calls: list[JsonValue] = [
        {"tool_id": "calculator", "params": {"expression": "6 * 7"}},
        {"tool_id": "again", "params": {"effects": str(effects), "until": str(go_on), "line": "batched"}},
        {"tool_id": "echo", "params": {"message": "after"}},
    ]
    return {"calls": calls, "ordered": True, "idempotency_key": go_on.parent.name}


def _calls(effects: Path, go_on: Path) -> dict[str, tuple[str, dict[str, JsonValue]]]:
    """Ten calls of all kinds; those with an effect leave their name. The last ones have just begun at the kill."""
    acting: dict[str, JsonValue] = {"effects": str(effects), "until": str(go_on)}
    return {
        "once": ("once", {**acting, "line": "once"}),
        "again": ("again", {**acting, "line": "again"}),
        "sum": ("calculator", {"expression": "6 * 7"}),
        "unknown tool": ("nowhere", {}),
        "echo": ("echo", {"message": "hello"}),
        "failing": ("versatile", {"mode": "fail"}),
        "typed": ("typed", {}),
        "hasty": ("hasty", {"mode": "hang"}),
        "twice": ("once", {**acting, "line": "twice"}),
        "sum after": ("calculator", {"expression": "1 + 1"}),
    }


def _what_stays(before: dict[int, str]) -> dict[int, str]:
    """Processes that still live a while later."""

    def living() -> dict[int, str]:
        return {pid: command for pid, command in before.items() if is_alive(pid)}

    try:
        wait_until(lambda: not living(), "all have gone")
    except AssertionError:
        return living()
    return {}


@pytest.mark.promise("never-twice")
def test_a_tool_that_acts_once_is_not_asked_again_and_its_outcome_is_called_unknown(aftermath: Aftermath) -> None:
    result = aftermath.result("once")
    assert count_of(aftermath.effects, "once") == 1
    assert (result.status, result.error_type) == ("error", ErrorType.EXECUTION_ERROR)
    assert result.error is not None
    assert isinstance(result.error.details, dict)
    assert result.error.details["outcome"] == "unknown"


def test_a_repeatable_tool_is_asked_again_and_completes(aftermath: Aftermath) -> None:
    assert count_of(aftermath.effects, "again") == 2
    assert aftermath.result("again").status == "success"
    assert aftermath.tasks["again"].status is TaskState.COMPLETED


@pytest.mark.promise("accepted-means-ended")
def test_every_call_that_was_accepted_has_its_result(aftermath: Aftermath) -> None:
    assert {name: task.result.error_type for name, task in aftermath.tasks.items() if task.result} == {
        "once": ErrorType.EXECUTION_ERROR,
        "again": None,
        "sum": None,
        "unknown tool": ErrorType.TOOL_NOT_FOUND,
        "echo": None,
        "failing": ErrorType.EXECUTION_ERROR,
        "typed": ErrorType.OUTPUT_VALIDATION_ERROR,
        "hasty": aftermath.result("hasty").error_type,
        "twice": aftermath.result("twice").error_type,
        "sum after": None,
    }
    assert aftermath.result("hasty").error_type in {ErrorType.TIMEOUT, ErrorType.EXECUTION_ERROR}
    assert aftermath.result("twice").error_type in {None, ErrorType.EXECUTION_ERROR}


@pytest.mark.promise("never-twice")
def test_no_effect_happens_twice_that_may_happen_once(aftermath: Aftermath) -> None:
    assert count_of(aftermath.effects, "twice") <= 1


@pytest.mark.promise("nothing-is-left-over")
def test_no_process_is_left_over(aftermath: Aftermath) -> None:
    assert aftermath.daemon in aftermath.before
    assert aftermath.after_restart == {}


@pytest.mark.long
@pytest.mark.parametrize("aftermath", ["the service"], indirect=True)
def test_nobody_has_to_start_the_service_again_to_be_rid_of_its_processes(aftermath: Aftermath) -> None:
    assert aftermath.left == {}


def test_a_batch_goes_on_and_ends(aftermath: Aftermath) -> None:
    assert (aftermath.batch.status, aftermath.batch.progress) == (TaskState.COMPLETED, "3 of 3")
    assert aftermath.repeated.batch_id == aftermath.batch.task_id
    assert [one.status for one in aftermath.repeated.results] == ["success"] * 3
    assert aftermath.repeated.results[2].result == {"message": "after"}
    assert count_of(aftermath.effects, "batched") == 2, "the killed attempt and the one that was made again; no third by asking again"


@pytest.mark.promise("callbacks-come")
def test_a_callback_is_delivered_by_the_next_start(aftermath: Aftermath) -> None:
    assert _attempts(aftermath.announced) > 1
    assert {got.headers["webhook-id"] for got in aftermath.received} == {f"{aftermath.announced.task_id}:ended"}
