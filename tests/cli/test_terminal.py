"""The output at a terminal, and in a pipe."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import Result

from toolagent.cli.mcp import place_of
from toolagent.cli.permissions import granted
from toolagent.cli.render import describe_error
from toolagent.cli.words import problem_told, result_told, spoken
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.http import Problem, ProblemField, ToolDetail
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.routes import ToolRoute
from toolagent.contracts.sources import BuiltinSource, LocalSource, McpSource, RemoteSource

if TYPE_CHECKING:
    from tests.cli.conftest import Service

Invoke = Callable[..., Result]
SCRIPT = str(Path(sys.executable).with_name("toolagent"))
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
INTERRUPTIBLE = ("/usr/bin/env", "--default-signal=INT", SCRIPT)
"""A shell has its background processes ignore Ctrl-C, and the processes that they start inherit that."""


def at_a_terminal(url: str, *words: str, columns: int = 100) -> str:
    """The output at a terminal of this width."""
    leader, follower = pty.openpty()
    env = {"TOOL_AGENT_URL": url, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen([SCRIPT, *words], stdin=follower, stdout=follower, stderr=subprocess.DEVNULL, env=env) as program:
        os.close(follower)
        written = b""
        try:
            while piece := os.read(leader, 65_536):
                written += piece
        except OSError:  # the other side is closed
            pass
        os.close(leader)
        program.wait(60)
    return written.decode().replace("\r\n", "\n")


def test_each_tool_is_one_coloured_line_at_a_terminal_and_one_plain_line_in_a_pipe(toolagent: Invoke, service: "Service") -> None:
    shown = at_a_terminal(service.url, "tools", columns=60)
    assert COLOUR.search(shown)
    lines = COLOUR.sub("", shown).splitlines()
    assert [line.split()[0] for line in lines] == ["id", "echo", "stitcher", "refuser", "breaker", "endless"]
    assert max(map(len, lines)) <= 60
    assert lines[1].rstrip().endswith("…")
    piped = toolagent("tools").stdout
    assert "Gives back what it is [bold]given[/bold]." in piped
    assert not COLOUR.search(piped)


def test_the_version_is_said(toolagent: Invoke) -> None:
    assert toolagent("--version").stdout == f"toolagent {metadata.version('toolagent')}\n"


def test_a_tool_is_started_stopped_and_removed(toolagent: Invoke) -> None:
    assert toolagent("start", "echo").stdout == "echo running http://127.0.0.1:9001\n"
    assert toolagent("stop", "echo").stdout == "echo stopped\n"
    assert json.loads(toolagent("stop", "echo", "--json").stdout) == {"tool_id": "echo", "state": "stopped"}
    assert toolagent("remove", "echo").exit_code == 2
    assert toolagent("remove", "echo", "--yes").stdout == "echo removed\n"


def test_a_script_that_ran_and_failed_is_a_command_that_failed(toolagent: Invoke) -> None:
    ended = {"success": False, "error": {"type": "ScriptError", "message": "It exited with code 3."}}
    result = toolagent("run", "echo", json.dumps({"text": "x", **ended}))
    assert (result.exit_code, json.loads(result.stdout)["success"]) == (1, False)
    assert "ScriptError: It exited with code 3." in result.stderr


LISTED = {"groups": "group", "hosts": "hosts", "external_tools": "external", "mcp_servers": "mcp"}
ABSENT = "'/path/to/img.jpg' is a path out of the files root. Upload it with POST /files and give its id, or put it elsewhere."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("$.image_path: " + ABSENT, "Upload it by image_path=@FILE, or put it elsewhere."),
        ("There is no file 'x'; upload it with POST /files.", "upload it by NAME=@FILE."),
        ("There is no tool 'x'. GET /tools lists what there is.", "`toolagent tools` lists what there is."),
        ("GET /tasks/create_a1b2c3d4 says how far it is.", "`toolagent task create_a1b2c3d4` says how far it is."),
        (
            "have it repaired (POST /tools/x/repair), delete it (DELETE /tools/x)",
            "(`toolagent repair x`), delete it (`toolagent remove x`)",
        ),
        ("task_spec.repo_url: It is missing.", "--repo: It is missing."),
        ("no session 's'. GET /groups/g/sessions lists them.", "`toolagent group sessions g` lists them."),
        ("There is no chat 'c'; GET /chats lists them, POST /chat opens one.", "`toolagent chat MESSAGE` opens one."),
        ("There is no tool 'x'. POST /create_tool builds one.", "`toolagent create` builds one."),
        *((f"GET /{path} lists", f"`toolagent {command} list` lists") for path, command in LISTED.items()),
    ],
)
def test_errors_are_told_in_the_words_of_the_terminal(said: str, told: str) -> None:
    assert told in spoken(said)


def test_what_is_wrong_is_said_once() -> None:
    issues = (ValidationIssue(path="$.a", message="is missing"), ValidationIssue(path="$.b", message="is too small"))
    listed = "; ".join(f"{issue.path}: {issue.message}" for issue in issues)
    error = ToolError(type=ErrorType.VALIDATION_ERROR, message=f"The parameters do not fit: {listed}")
    result = ToolResult(status="error", error=error, validation_errors=issues)
    assert result_told(result) == "The parameters do not fit:\n  $.a: is missing\n  $.b: is too small"
    broken = ToolError(
        type=ErrorType.OUTPUT_VALIDATION_ERROR, message=f"It ran: {listed}", details={"outcome": "executed", "output": {"a": 1}}
    )
    told = describe_error(ToolResult(status="error", error=broken, validation_errors=issues))
    assert told.splitlines()[-1] == '  details: {"output": {"a": 1}}'
    field = ProblemField(field="task_spec.tool_name", message="It is missing.")
    problem = Problem(type="x", title="X", status=422, detail="No task: task_spec.tool_name: It is missing.", errors=(field,))
    assert problem_told(problem) == "No task: --name: It is missing."


def test_the_command_of_a_server_is_one_short_line() -> None:
    assert place_of(McpServerSpec(command="uvx", args=("mcp-server-time",))) == "uvx mcp-server-time"
    told = place_of(McpServerSpec(command="python3", args=("-c", "import sys\n" * 90)))
    assert (len(told), told[:25], told[-1]) == (80, "python3 -c import sys imp", "…")


def test_what_a_tool_may_is_told_of_tools_that_a_sandbox_holds() -> None:
    asked = {"networkAccess": {"allowHosts": ["example.com"]}, "fileAccess": {"allowRead": ["./*"]}, "limits": {"memoryBytes": 1048576}}
    held = ToolDetail.model_validate(
        {"tool_id": "a", "name": "A", "securityContext": asked, "sources": (LocalSource(host_dir="a"),), "route": ToolRoute(tool_id="a")}
    )
    assert dict(granted(held)) == {"hosts": "example.com", "may read": "./*", "may write": "none", "may use": "memory: 1 MiB"}
    remote = ToolDetail(tool_id="a", name="A", sources=(RemoteSource(remote_url="https://api.example.com/v1"),), route=held.route)
    assert dict(granted(remote)) == {"sends to": "api.example.com"}
    server = ToolDetail(tool_id="a", name="A", sources=(McpSource(tool_name="a", url="https://mcp.example.com/mcp"),), route=held.route)
    assert dict(granted(server))["sends to"] == "mcp.example.com"
    builtin = ToolDetail(tool_id="a", name="A", sources=(BuiltinSource(handler="echo"),), route=held.route)
    assert dict(granted(builtin)) == {}
