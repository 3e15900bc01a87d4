"""Script tools through their runtime: versions, files of a call, changes between calls."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NoSlot, NotSent, StartFailed
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Installing, Mortal, ToolRequest
from engine.runtimes.scripts.runtime import ScriptRuntime
from tests.runtimes.conftest import Routes, eventually
from tests.scripts.harness import Scripts, silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ScriptLanguage, ScriptSource

SOURCE = ScriptSource(script_path="tool/main.py", language=ScriptLanguage.PYTHON)
ECHO = "import json, sys\njson.dump(json.load(sys.stdin), sys.stdout)\n"


@dataclass
class Called:
    supervisor: Supervisor
    scripts: Scripts
    source: ScriptSource = SOURCE

    async def __call__(self, tool: ToolManifest, params: dict[str, JsonValue] | None = None, *, only_if_running: bool = False) -> JsonValue:
        entry = ToolEntry(manifest=tool, sources=(self.source,))
        request = ToolRequest("call-12345678", params or {}, 30.0, self.scripts.state / "out", manifest=tool)
        dispatch = Dispatch(entry, request)
        reply = await (self.supervisor.call_running(dispatch) if only_if_running else self.supervisor.call(dispatch))
        return reply.output


@pytest_asyncio.fixture
async def call(scripts: Scripts) -> AsyncGenerator[Called]:
    supervisor = Supervisor({"script": ScriptRuntime(scripts.service)}, Routes(), "here")
    yield Called(supervisor, scripts)
    await supervisor.close()


def tool_of(version: str = "1.0.0", **more: JsonValue) -> ToolManifest:
    return ToolManifest.model_validate({"tool_id": "mine:tool", "name": "Tool", "version": version, **more})


async def test_a_script_tool_answers_and_its_failure_is_a_failed_call(call: Called) -> None:
    call.scripts.write("tool/main.py", ECHO)
    assert await call(tool_of(), {"a": 1}) == {"a": 1}
    call.scripts.write("tool/main.py", "import sys\nsys.exit('why')")
    with pytest.raises(CallFailed) as caught:
        await call(tool_of())
    failure = caught.value
    assert (failure.error_type, failure.outcome) == (ErrorType.EXECUTION_ERROR, "failed")
    assert failure.details == {"original_type": "ScriptError", "exit_code": 1, "stderr": "why"}


async def test_the_fast_path_waits_until_everything_is_installed(call: Called) -> None:
    runtime = ScriptRuntime(call.scripts.service)
    assert isinstance(runtime, Installing)
    assert not isinstance(runtime, Mortal)
    call.scripts.write("tool/main.py", ECHO)
    with pytest.raises(NoSlot):
        await call(tool_of(), only_if_running=True)
    await call(tool_of())
    assert await call(tool_of(), {"a": 1}, only_if_running=True) == {"a": 1}


async def test_a_script_that_leads_out_is_not_sent(call: Called) -> None:
    runtime = ScriptRuntime(call.scripts.service)
    with pytest.raises(StartFailed) as caught:
        await runtime.start(tool_of(), SOURCE.model_copy(update={"script_path": "../x.py"}), silent)
    assert (caught.value.error_type, caught.value.details["original_type"]) == (ErrorType.SECURITY_ERROR, "SecurityError")


async def test_a_script_that_was_removed_is_not_sent(call: Called, root: Path) -> None:
    call.scripts.write("tool/main.py", ECHO)
    await call(tool_of())
    (root / "tool/main.py").unlink()
    with pytest.raises(NotSent) as caught:
        await call(tool_of())
    assert caught.value.error_type is ErrorType.DEPENDENCY_ERROR


async def test_what_a_tool_may_is_as_it_is_now(call: Called) -> None:
    call.scripts.write("tool/main.py", "import os\nprint('true' if os.path.isdir('.cache') else 'false')")
    assert await call(tool_of()) is False
    assert await call(tool_of(securityContext={"fileAccess": {"allowWrite": [".cache/**"]}})) is True


@pytest.mark.parametrize("is_changed", [False, True], ids=["as called", "changed since"])
async def test_a_stopped_tool_runs_no_script_any_more_and_its_calls_fail(call: Called, *, is_changed: bool) -> None:
    begun = call.scripts.state / "out/begun"
    begun.parent.mkdir(parents=True)
    text = "import os, time\nopen(os.environ['TOOL_AGENT_OUTPUT_DIR'] + '/begun', 'w')\ntime.sleep(60)"
    call.scripts.write("tool/main.py", text)
    call.scripts.write("tool/other.py", ECHO)
    running = asyncio.create_task(call(tool_of()))
    await eventually(begun.exists)
    call.source = SOURCE.model_copy(update={"script_path": "tool/other.py"}) if is_changed else SOURCE
    if is_changed:
        assert await call(tool_of(), {"a": 1}) == {"a": 1}
        assert not running.done()
    await call.supervisor.stop("mine:tool")
    assert call.scripts.leftovers() == []
    with pytest.raises(CallFailed) as caught:
        await running
    failure = caught.value
    assert (failure.error_type, failure.outcome, failure.details["reason"]) == (ErrorType.EXECUTION_ERROR, "unknown", "stopped")


async def test_files_of_a_call_are_handed_over_and_taken_back(call: Called, tmp_path: Path) -> None:
    given, out = tmp_path / "given.txt", call.scripts.state / "out"
    given.write_text("hello")
    out.mkdir(parents=True)
    text = (
        "import json, os, sys\npath = os.path.join(os.environ['TOOL_AGENT_OUTPUT_DIR'], 'made.txt')\n"
        "open(path, 'w').write(open(json.load(sys.stdin)['file']).read().upper())\nprint(json.dumps(path))"
    )
    call.scripts.write("tool/main.py", text)
    schema: JsonValue = {"type": "object", "properties": {"file": {"type": "string", "format": "file-path"}}}
    assert await call(tool_of(input_schema=schema), {"file": str(given)}) == str(out / "made.txt")
    assert (out / "made.txt").read_text() == "HELLO"
    call.scripts.write("tool/main.py", "import json, sys\nopen(json.load(sys.stdin)['file'], 'w')")
    with pytest.raises(CallFailed):
        await call(tool_of(input_schema=schema), {"file": str(given)})
    assert given.read_text() == "hello"
