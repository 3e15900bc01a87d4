"""A running service enforces the operator's sandbox policy."""

import json
from pathlib import Path

import pytest

from tests.system.conftest import MakeService
from tests.system.service_process import run_tool
from toolagent.contracts.calls import ErrorType

pytestmark = pytest.mark.timeout(180)


@pytest.mark.promise("no-sandbox-no-code")
def test_where_no_level_is_good_enough_no_code_of_tools_runs_and_the_rest_goes_on(make_service: MakeService, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("# stronger than what the settings allow\nat_least: docker\n", "utf-8")
    service = make_service(SANDBOX_POLICY=str(policy), SANDBOX_LEVELS="bubblewrap")
    service.start()
    assert "no_sandbox" in service.output
    status, result = run_tool(service.http, "versatile", {})
    assert (status, result.error_type) == (503, ErrorType.UNAVAILABLE)
    assert result.error is not None
    assert "at least docker" in result.error.message
    _, result = run_tool(service.http, "core:execute-python-script", {"scriptPath": "examples/echo.py", "inputData": {}})
    assert isinstance(result.result, dict)
    error = result.result["error"]
    assert isinstance(error, dict)
    assert (result.result["success"], error["type"]) == (False, "UnavailableError")
    assert run_tool(service.http, "calculator", {"expression": "6 * 7"})[0] == 200
    refused = service.http.get("/audit").json()["entries"]
    assert {(one["outcome"], one.get("sandbox")) for one in refused} == {("error", None)}


def test_what_was_asked_and_what_was_enforced_stand_in_the_audit(make_service: MakeService, tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "counting" / "counting.tool.json"
    tool.parent.mkdir(parents=True)
    (tool.parent / "count.py").write_text("print(1)\n", "utf-8")
    manifest = {
        "toolId": "test:counting",
        "displayName": "Counting",
        "description": "Counts to one.",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": "count.py", "language": "python"},
        "parameters": {"type": "object"},
        "securityContext": {"limits": {"processes": 40}},
    }
    tool.write_text(json.dumps(manifest), "utf-8")
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps({"ceilings": {"processes": 30}}), "utf-8")
    service = make_service(SANDBOX_POLICY=str(policy), TOOL_DIRS=str(tmp_path / "tools"))
    service.start()
    status, result = run_tool(service.http, "test:counting", {})
    assert (status, result.result) == (200, 1), result.error
    entries = service.http.get("/audit", params={"tool_id": "test:counting"}).json()["entries"]
    sandbox = next(entry for entry in entries if entry["action"] == "call")["sandbox"]
    assert (sandbox["requested"]["limits"]["processes"], sandbox["enforced"]["limits"]["processes"]) == (40, 30)
    limits = [one for one in sandbox["differences"] if one["item"] == "limits.processes"]
    assert [bool(one["reason"]) for one in limits] == [True]
