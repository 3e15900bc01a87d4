"""Audit entries of scripts: caller, command and result; also refused runs, and installations."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.runtimes.builtin.execute_script import tool
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import ToolContext
from engine.runtimes.failures import CallFailed, StartFailed
from engine.runtimes.runtime import ToolRequest
from engine.runtimes.scripts.accounts import ScriptAccounts
from engine.runtimes.scripts.runtime import ScriptRuntime
from tests.scripts.harness import MIB, Scripts, script_service, silent
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.calls import Caller, ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxLevel
from toolagent.contracts.sources import ScriptLanguage, ScriptSource

CALLER = Caller(caller_id="agent-7", caller_type="agent", variables={"lang": "en"})
TOOL = tool(BuiltinOptions())
ECHO = "import json, sys\njson.dump(json.load(sys.stdin), sys.stdout)\n"


@dataclass
class Lines:
    entries: list[AuditEntry] = field(default_factory=list[AuditEntry])

    def note(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


def lines_of(scripts: Scripts) -> list[AuditEntry]:
    lines = Lines()
    accounts = ScriptAccounts(lines, "here")
    for run in scripts.runs:
        accounts.ran(run)
    return lines.entries


async def executed(scripts: Scripts, params: dict[str, JsonValue], caller: Caller = CALLER) -> JsonValue:
    manifest = TOOL.manifest.model_copy(update={"tool_id": "core:execute-python-script", "version": "1.0.0"})
    request = ToolRequest("call-12345678", params, 60.0, scripts.state, silent, manifest=manifest, caller=caller)
    return await TOOL.invoke(params, ToolContext.of(TOOL.manifest, request, scripts.service))


async def test_a_failure_repeats_no_secret_of_the_call(scripts: Scripts) -> None:
    runtime = ScriptRuntime(scripts.service)
    source = ScriptSource(
        script_path=scripts.write("x.py", "import sys\nsys.exit('bad ' + sys.stdin.read())"), language=ScriptLanguage.PYTHON
    )
    manifest = ToolManifest(tool_id="t", name="T", input_schema={"properties": {"password": {"writeOnly": True}}})
    running = await runtime.start(manifest, source, silent)
    with pytest.raises(CallFailed, match="hunter2"):
        await runtime.call(running, source, ToolRequest("call-12345678", {"password": "hunter2"}, 30.0, scripts.state / "out"))
    (line,) = lines_of(scripts)
    assert (line.message, line.outcome) == ('The script exited with code 1: bad {"password": "***"}', "error")


async def test_a_run_says_who_asked_for_it_and_what_was_run(scripts: Scripts) -> None:
    scripts.write("x.py", ECHO)
    await executed(scripts, {"scriptPath": "x.py", "inputData": {"text": "x", "api_key": "s3cret"}})
    (line,) = lines_of(scripts)
    assert (line.action, line.tool_id, line.version, line.call_id) == ("call", "core:execute-python-script", "1.0.0", "call-12345678")
    assert (line.caller, line.host, line.outcome) == (CALLER, "here", "success")
    assert line.command[-1] == str(scripts.root.resolve() / "x.py")
    assert line.sandbox is not None
    assert line.params == {"scriptPath": "x.py", "inputData": {"text": "x", "api_key": "***"}}
    assert "s3cret" not in line.model_dump_json()


async def test_variables_of_the_caller_are_masked_as_parameters_are(scripts: Scripts) -> None:
    scripts.write("x.py", ECHO)
    await executed(scripts, {"scriptPath": "x.py"}, CALLER.model_copy(update={"variables": {"token": "s3cret"}}))
    (line,) = lines_of(scripts)
    assert "s3cret" not in line.model_dump_json()


@pytest.mark.parametrize(
    ("params", "error_type"),
    [
        ({"scriptPath": "../outside.py"}, ErrorType.SECURITY_ERROR),
        ({"scriptPath": "/etc/passwd", "language": "python"}, ErrorType.SECURITY_ERROR),
        ({"scriptPath": "link.py"}, ErrorType.SECURITY_ERROR),
        ({"scriptPath": "nowhere.py"}, ErrorType.DEPENDENCY_ERROR),
        ({"scriptPath": "x.py", "inputData": {"text": "y" * MIB}}, ErrorType.VALIDATION_ERROR),
    ],
    ids=["up", "absolute", "link", "missing", "large"],
)
async def test_what_is_refused_before_it_runs_leaves_a_line(
    scripts: Scripts, root: Path, params: dict[str, JsonValue], error_type: ErrorType
) -> None:
    scripts.write("x.py", ECHO)
    (root / "link.py").symlink_to(root / "x.py")
    await executed(scripts, params)
    (line,) = lines_of(scripts)
    assert (line.action, line.outcome, line.error_type, line.caller) == ("call", "error", error_type, CALLER)
    assert line.command == ()
    assert line.message
    assert len(line.model_dump_json()) < 20_000


async def test_a_script_tool_that_cannot_be_started_leaves_a_line(scripts: Scripts) -> None:
    tool = ToolManifest(tool_id="mine:tool", name="Tool", version="2.0.0")
    source = ScriptSource(script_path="../outside.py", language=ScriptLanguage.PYTHON)
    with pytest.raises(StartFailed):
        await ScriptRuntime(scripts.service).start(tool, source, silent)
    (line,) = lines_of(scripts)
    assert (line.action, line.tool_id, line.version, line.call_id) == ("start", "mine:tool", "2.0.0", "")
    assert (line.outcome, line.error_type) == ("error", ErrorType.SECURITY_ERROR)


async def test_an_installation_leaves_a_line_with_its_packages(tmp_path: Path, root: Path) -> None:
    lines = Lines()
    accounts = ScriptAccounts(lines, "here")
    async with script_service(tmp_path / "state", root, tmp_path / "state" / "environments") as scripts:
        scripts.write("x.py", ECHO)
        await scripts.run("x.py", {})
        await scripts.run("x.py", {})
        accounts.installed(*scripts.installs)
    (line,) = lines.entries
    assert (line.action, line.tool_id, line.outcome, line.installs) == ("build", "tool", "success", ())
    assert line.command
    assert line.sandbox is not None
    assert line.sandbox.level is SandboxLevel.BUBBLEWRAP
    assert line.sandbox.enforced.limits.wall_s is not None
