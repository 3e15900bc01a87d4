"""Calls over Temporal's own command line: plain JSON in, plain JSON out."""

import json
import subprocess

import pytest

from tests.system.service_process import ServiceProcess
from toolagent.contracts.calls import ErrorType, ToolResult
from workers.dev_server import temporal_binary


def _execute(service: ServiceProcess, call: str, workflow_id: str) -> ToolResult:
    command = [temporal_binary(), "workflow", "execute", "--type", "InvokeTool", "--task-queue", "tool-agent"]
    where = ["--workflow-id", workflow_id, "--address", service.temporal_address, "-o", "json"]
    done = subprocess.run([*command, "--input", call, *where], capture_output=True, check=True, timeout=60)
    result = json.loads(done.stdout)["result"]
    # Temporal's command line shows an empty list as null.
    return ToolResult.model_validate({name: value for name, value in result.items() if value is not None})


@pytest.mark.promise("one-pipeline")
def test_a_workflow_started_with_plain_json_answers_in_plain_json(service: ServiceProcess) -> None:
    result = _execute(service, '{"tool_id": "calculator", "params": {"expression": "6 * 7"}}', "call-command-line")
    assert (result.status, result.call_id, result.tool_id) == ("success", "call-command-line", "calculator")
    assert result.result == {"expression": "6 * 7", "result": 42}
    assert service.task("call-command-line").result == result


def test_input_that_is_no_call_is_answered_with_what_is_wrong(service: ServiceProcess) -> None:
    result = _execute(service, '{"params": []}', "call-command-line-bad")
    assert result.error_type is ErrorType.VALIDATION_ERROR
    assert {issue.path for issue in result.validation_errors} == {"$.tool_id", "$.params"}


def test_a_call_is_found_by_the_search_attribute_of_its_tool(service: ServiceProcess) -> None:
    _execute(service, '{"tool_id": "echo", "params": {"message": "hello"}}', "call-command-line-search")
    query = 'ToolId = "echo" AND WorkflowId = "call-command-line-search"'
    command = [temporal_binary(), "workflow", "count", "--query", query, "--address", service.temporal_address, "-o", "json"]
    found = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert json.loads(found.stdout)["count"] == "1"
