"""Tools as processes: started once, restarted, stopped when unused; and callers that disconnect."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from pydantic import JsonValue

from tests.system.conftest import MakeService
from tests.system.effects import count_of, wait_for_effect
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.tasks import TaskState


def _home(service: ServiceProcess, tool_id: str) -> Path:
    """The home folder of the tool, as the host sees it."""
    return service.state / "tools" / tool_id / "home"


def _starts(service: ServiceProcess, tool_id: str) -> int:
    """The number of starts of a tool so far."""
    return len((_home(service, tool_id) / "starts").read_text("ascii").split())


def _pid(service: ServiceProcess, tool_id: str) -> int | None:
    routes = service.http.get("/tools/status").json()["tools"]
    return next(route["pid"] for route in routes if route["tool_id"] == tool_id)


def test_twenty_first_calls_at_once_start_one_process(service: ServiceProcess, effects: Path) -> None:
    def call(number: int) -> tuple[int, ToolResult]:
        return run_tool(service.http, "crowded", {"effects": str(effects), "line": str(number), "seconds": 0.5})

    with ThreadPoolExecutor(20) as callers:
        answers = [*callers.map(call, range(20))]
    assert [status for status, _ in answers] == [200] * 20
    assert sorted(effects.read_text("ascii").split(), key=int) == [str(number) for number in range(20)]
    assert _starts(service, "crowded") == 1


@pytest.mark.long
def test_an_environment_that_another_service_has_built_is_used(service: ServiceProcess, make_service: MakeService, tmp_path: Path) -> None:
    service.http.post("/tools/versatile/start").raise_for_status()
    for settings in ({"ENVIRONMENTS_DIR": str(tmp_path / "of its own")}, {}):
        other = make_service(**settings)
        other.start()
        other.http.post("/tools/versatile/start").raise_for_status()
        done = [entry["action"] for entry in other.http.get("/audit", params={"tool_id": "versatile"}).json()["entries"]]
        other.end()
    assert done == ["start", "start", "build"], "only the first time, on a folder of its own"


def test_a_tool_that_was_killed_is_started_anew_by_the_next_call(service: ServiceProcess) -> None:
    first = service.http.post("/tools/versatile/start").raise_for_status().json()["pid"]
    assert _pid(service, "versatile") == first
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: _pid(service, "versatile") is None, "the end of the tool is noticed")
    starts = _starts(service, "versatile")
    assert run_tool(service.http, "versatile", {})[0] == 200
    assert _starts(service, "versatile") == starts + 1
    assert _pid(service, "versatile") not in {first, None}


def test_a_tool_that_was_killed_this_very_moment_is_started_anew_too(service: ServiceProcess) -> None:
    first = service.http.post("/tools/quick/start").raise_for_status().json()["pid"]
    starts = _starts(service, "quick")
    os.kill(first, signal.SIGKILL)
    assert run_tool(service.http, "quick", {})[0] == 200
    assert _starts(service, "quick") == starts + 1
    assert _pid(service, "quick") != first


@pytest.mark.promise("never-twice")
def test_a_tool_that_is_killed_while_it_acts_leaves_an_unknown_outcome(service: ServiceProcess, effects: Path) -> None:
    call_id = service.begin("once", {"effects": str(effects), "until": str(effects.with_name("never"))})
    wait_for_effect(effects)
    pid = _pid(service, "once")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    result = service.ended_task(call_id).result
    assert result is not None
    assert result.error is not None
    assert isinstance(result.error.details, dict)
    assert (result.error.type, result.error.details["outcome"]) == (ErrorType.EXECUTION_ERROR, "unknown")
    assert count_of(effects) == 1


def test_a_repeatable_tool_that_is_killed_while_it_works_is_asked_again(service: ServiceProcess, effects: Path) -> None:
    call_id = service.begin("again", {"effects": str(effects), "until": str(effects.with_name("later"))})
    wait_for_effect(effects)
    pid = _pid(service, "again")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: count_of(effects) == 2, "the tool is asked again")
    (effects.with_name("later")).touch()
    assert service.ended_task(call_id).status is TaskState.COMPLETED


@pytest.mark.promise("cancel-closes")
def test_a_cancelled_call_lets_go_of_the_tool_which_can_be_used_again(service: ServiceProcess, effects: Path) -> None:
    call_id = service.begin("once", {"effects": str(effects), "until": str(effects.with_name("never"))})
    wait_for_effect(effects)
    assert service.http.post(f"/tasks/{call_id}/cancel").status_code == 202
    task = service.ended_task(call_id)
    assert task.status is TaskState.CANCELLED
    assert task.result is not None
    assert task.result.error is not None
    assert task.result.error.type is ErrorType.CANCELLED
    details: JsonValue = {"sent": True, "outcome": "unknown", "tool": "tool_idle"}
    assert task.result.error.details == details
    wait_until(effects.with_suffix(".hung_up").exists, "the tool sees that nobody listens")
    assert run_tool(service.http, "once", {"effects": str(effects), "line": "after"})[0] == 200
    assert service.http.post(f"/tasks/{call_id}/cancel").status_code == 200, "cancelling what has ended changes nothing"


def test_a_tool_that_does_not_heed_a_cancellation_is_stopped(service: ServiceProcess) -> None:
    call_id = service.begin("versatile", {"mode": "hang", "stubborn": True})
    noted = _home(service, "versatile") / "hanging"
    wait_until(noted.exists, "the tool hangs", 90)
    pid = _pid(service, "versatile")
    assert pid is not None
    service.http.post(f"/tasks/{call_id}/cancel").raise_for_status()
    result = service.ended_task(call_id).result
    assert result is not None
    assert result.error is not None
    assert isinstance(result.error.details, dict)
    assert result.error.details["tool"] == "tool_stopped"
    assert not psutil.pid_exists(pid)
    assert run_tool(service.http, "versatile", {})[0] == 200


def test_a_caller_who_waits_learns_that_somebody_cancelled(service: ServiceProcess, effects: Path) -> None:
    body = {"tool_id": "once", "params": {"effects": str(effects), "until": str(effects.with_name("never"))}}
    with ThreadPoolExecutor(1) as caller:
        waiting = caller.submit(service.http.post, "/run_tool", json=body, headers={"X-Call-Id": "call-cancelled-by-other"})
        wait_for_effect(effects)
        service.http.post("/tasks/call-cancelled-by-other/cancel").raise_for_status()
        answer = waiting.result(60)
    assert (answer.status_code, answer.json()["error_type"]) == (409, "cancelled")


@pytest.mark.promise("own-call-id")
def test_a_client_that_disconnects_finds_its_result_under_the_id_it_chose(service: ServiceProcess, effects: Path) -> None:
    body = {"tool_id": "once", "params": {"effects": str(effects), "until": str(effects.with_name("later"))}}
    with (
        httpx.Client(base_url=service.api_url, timeout=httpx.Timeout(10, read=1), trust_env=False) as hasty,
        pytest.raises(httpx.ReadTimeout),
    ):
        hasty.post("/run_tool", json=body, headers={"X-Call-Id": "call-left-behind"})
    wait_for_effect(effects)
    (effects.with_name("later")).touch()
    task = service.ended_task("call-left-behind")
    assert task.status is TaskState.COMPLETED
    assert count_of(effects) == 1
