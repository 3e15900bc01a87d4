"""Calls by Temporal's own command line (plain JSON in, plain JSON out), and by ours."""

import json
import subprocess

import pytest
from typer.testing import CliRunner

from tests.system.service_process import ServiceProcess
from toolagent.cli.app import app
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.hosts import HostListing
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.versions import ToolVersions
from workers.temporal.dev_server import temporal_binary


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
    assert _count(service, 'ToolId = "echo" AND WorkflowId = "call-command-line-search"') == 1


def test_a_call_that_failed_is_found_by_its_outcome(service: ServiceProcess) -> None:
    _execute(service, '{"tool_id": "nobody"}', "call-command-line-failed")
    assert _count(service, 'Outcome = "tool_not_found" AND WorkflowId = "call-command-line-failed"') == 1


def _count(service: ServiceProcess, query: str) -> int:
    command = [temporal_binary(), "workflow", "count", "--query", query, "--address", service.temporal_address, "-o", "json"]
    found = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return int(json.loads(found.stdout).get("count", 0))


def _toolagent(service: ServiceProcess, *words: str) -> str:
    """The output of our command line, which must succeed. As a process of its own it is shown in `tests/cli`."""
    done = CliRunner().invoke(app, [*words], env={"TOOL_AGENT_URL": service.api_url})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_versions_are_listed_deactivated_and_activated_by_our_command(service: ServiceProcess) -> None:
    found = ToolVersions.model_validate_json(_toolagent(service, "versions", "typed", "--json"))
    version = found.active_version
    without = ToolVersions.model_validate_json(_toolagent(service, "deactivate", "typed", version, "--json"))
    assert [one.status for one in without.versions] == [ToolStatus.INACTIVE]
    again = ToolVersions.model_validate_json(_toolagent(service, "activate", "typed", version, "--json"))
    assert again == found
    assert version in _toolagent(service, "versions", "typed")


def test_our_command_lists_the_host_that_serves(service: ServiceProcess) -> None:
    hosts = HostListing.model_validate_json(_toolagent(service, "hosts", "list", "--json")).hosts
    assert [host.is_alive for host in hosts] == [True]
    assert hosts[0].host in _toolagent(service, "hosts", "list")
