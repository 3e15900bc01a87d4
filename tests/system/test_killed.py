"""What `kill -9` leaves: no process, no second effect, and a result for every call that was accepted."""

import os
import signal
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.system.effects import count_of, own_effects, wait_for_effect
from tests.system.leftovers import is_alive, processes_of
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.tasks import TaskState, TaskView

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What was there before, what the kill left, and how the calls ended after a restart."""

    effects: Path
    daemon: int
    before: dict[int, str]
    left: dict[int, str]
    after_restart: dict[int, str]
    tasks: dict[str, TaskView]

    def result(self, name: str) -> ToolResult:
        result = self.tasks[name].result
        assert result is not None
        return result


@pytest.fixture(scope="module", params=["the service", "everything"])
def aftermath(request: pytest.FixtureRequest, catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Aftermath]:
    folder = tmp_path_factory.mktemp("killed")
    service = ServiceProcess(folder, catalog)
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
    for name in ("once", "again"):
        wait_for_effect(effects, name)
    before = processes_of(service.state)
    if everything:
        # The guardian too: only the next start is left to clean up after this.
        for pid in (pid for pid, command in before.items() if "start-dev" in command or "guardian" in command):
            os.kill(pid, signal.SIGKILL)
    service.kill()
    go_on.touch()
    left = before if everything else _what_stays(before)
    service.start()
    after_restart = _what_stays(before)
    tasks = {name: service.ended_task(call_id, 90) for name, call_id in calls.items()}
    return Aftermath(effects, daemon, before, left, after_restart, tasks)


def _calls(effects: Path, go_on: Path) -> dict[str, tuple[str, dict[str, JsonValue]]]:
    """Ten calls of all kinds; those that have an effect leave their name. The last ones are hardly begun when the kill comes."""
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
    """Those that still live a while later."""

    def living() -> dict[int, str]:
        return {pid: command for pid, command in before.items() if is_alive(pid)}

    try:
        wait_until(lambda: not living(), "all have gone", 15)
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


@pytest.mark.parametrize("aftermath", ["the service"], indirect=True)
def test_nobody_has_to_start_the_service_again_to_be_rid_of_its_processes(aftermath: Aftermath) -> None:
    assert aftermath.left == {}
