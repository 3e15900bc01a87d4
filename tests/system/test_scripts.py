"""Script tools over HTTP."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest
from pydantic import JsonValue

from engine.runtimes.process.ownership import Owner
from tests.system.conftest import MakeService
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType

PYTHON, NODE = "core:execute-python-script", "core:execute-nodejs-script"
LONG: dict[str, JsonValue] = {"scriptPath": "examples/long_running.py", "timeoutMs": 50_000}

pytestmark = pytest.mark.timeout(300)


def result_of(service: ServiceProcess, tool_id: str, **params: JsonValue) -> dict[str, JsonValue]:
    status, result = run_tool(service.http, tool_id, params)
    assert (status, result.status) == (httpx.codes.OK, "success"), result.error
    assert isinstance(result.result, dict)
    return result.result


@pytest.mark.parametrize(("tool_id", "ending"), [(PYTHON, "py"), (NODE, "mjs")])
def test_the_specified_examples_give_the_documented_results(service: ServiceProcess, tool_id: str, ending: str) -> None:
    echoed = result_of(service, tool_id, scriptPath=f"examples/echo.{ending}", inputData={"message": "hello from agent"})
    assert (echoed["success"], echoed["outputData"]) == (True, {"received_message": "hello from agent"})
    timed_out = result_of(service, tool_id, scriptPath=f"examples/long_running.{ending}", inputData={}, timeoutMs=100)
    assert timed_out["success"] is False
    error = timed_out["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["message"]) == ("TimeoutError", "Script execution timed out.")


def test_a_script_tool_answers_and_bad_parameters_run_nothing(service: ServiceProcess) -> None:
    assert result_of(service, "examples:word-count", text="a b a", top=1)["top"] == [{"word": "a", "count": 2}]
    status, result = run_tool(service.http, "examples:word-count", {"text": 1})
    assert (status, result.error_type) == (422, ErrorType.VALIDATION_ERROR)


def test_progress_is_seen_in_the_task_and_cancelling_ends_the_script(service: ServiceProcess) -> None:
    call_id = service.begin(PYTHON, LONG)
    wait_until(lambda: "of 60" in (service.task(call_id).progress or ""), "the script tells of its progress", 60.0)
    assert _scripts_at_work()
    service.http.post(f"/tasks/{call_id}/cancel").raise_for_status()
    task = service.ended_task(call_id)
    assert task.result is not None
    assert task.result.error is not None
    details: JsonValue = {"sent": True, "outcome": "unknown", "tool": "processes_ended"}
    assert (task.result.error.type, task.result.error.details) == (ErrorType.CANCELLED, details)
    wait_until(lambda: not _scripts_at_work(), "the script is gone")


def test_each_run_leaves_a_line_in_the_audit(service: ServiceProcess) -> None:
    result_of(service, PYTHON, scriptPath="examples/echo.py", inputData={"message": "x", "api_key": "s3cret"})
    written = (service.state / "audit/audit.jsonl").read_text("utf-8")
    last = json.loads(written.splitlines()[-1])
    assert (last["tool_id"], last["action"], last["params"]["inputData"]["message"]) == (PYTHON, "call", "x")
    assert last["sandbox"]["level"] in ("bubblewrap", "docker")
    assert "s3cret" not in written


@pytest.mark.long
def test_a_service_killed_in_the_middle_of_a_hundred_script_calls_leaves_nothing(make_service: MakeService) -> None:
    service = make_service()
    service.start()
    result_of(service, PYTHON, scriptPath="examples/echo.py")

    def one(number: int) -> bool:
        try:
            return result_of(service, PYTHON, scriptPath="examples/echo.py", inputData={"message": number})["success"] is True
        except httpx.TransportError:
            return False

    with ThreadPoolExecutor(16) as callers:
        service.begin(PYTHON, LONG)
        calls = [callers.submit(one, number) for number in range(100)]
        wait_until(lambda: any(call.done() for call in calls) and _scripts_at_work(), "some calls have ended, others run", 60.0)
        psutil.Process(service.pid).send_signal(signal.SIGKILL)
        assert not all(call.result() for call in calls)
    service.kill()
    wait_until(lambda: not _scripts_at_work(), "the scripts are gone")
    service.start()
    wait_until(lambda: not _groups_but_those_of(service.pid, service), "the control groups of the dead are gone", 60.0)
    assert result_of(service, PYTHON, scriptPath="examples/echo.py", inputData={"message": 1})["outputData"] == {"received_message": 1}


def _scripts_at_work() -> list[int]:
    return [one.pid for one in psutil.process_iter(["cmdline"]) if any("scripts/examples/" in word for word in one.info["cmdline"] or ())]


def _groups_but_those_of(pid: int, service: ServiceProcess) -> list[str]:
    # Not by a glob: the groups of others come and go meanwhile.
    owned = [name for inside, folders, _ in os.walk("/sys/fs/cgroup") if inside.endswith("/tool-agent") for name in folders]
    return [name for name in owned if f":{pid}:" not in name and name.split(":")[0] == Owner.state_of(service.state)]
