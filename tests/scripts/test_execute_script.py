"""The tools that run any script below the root: the failure of a script is the result of a successful call."""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jsonschema_rs
import pytest
from pydantic import JsonValue

from engine.runtimes.builtin.execute_script import tool
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import ToolContext
from engine.runtimes.environments.execution import Executor
from engine.runtimes.failures import CallFailed
from engine.runtimes.runtime import ToolRequest
from engine.runtimes.scripts.service import ScriptService
from tests.scripts.harness import POLICY, Scripts, script_service
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sandbox import SandboxPolicy

EXAMPLES = Path(__file__).parents[2] / "data" / "scripts" / "examples"
TOOL = tool(BuiltinOptions())


async def executed(scripts: Scripts, params: dict[str, JsonValue], tool_id: str = "core:execute-python-script") -> Mapping[str, JsonValue]:
    manifest = TOOL.manifest.model_copy(update={"tool_id": tool_id})
    request = ToolRequest("call-12345678", params, 60.0, scripts.state, scripts.told.append, manifest)
    output = await TOOL.invoke(params, ToolContext.of(TOOL.manifest, request, scripts.service))
    assert isinstance(output, dict)
    assert jsonschema_rs.is_valid(TOOL.manifest.output_schema, output)
    return output


async def test_the_specified_examples_give_what_it_documents(scripts: Scripts, root: Path) -> None:
    shutil.copytree(EXAMPLES, root / "examples")
    for example in TOOL.manifest.examples:
        output = await executed(scripts, example.input)
        assert isinstance(example.expected_output, dict)
        assert {name: output[name] for name in example.expected_output if name != "error"} == {
            name: value for name, value in example.expected_output.items() if name != "error"
        }
        error, expected = output.get("error"), example.expected_output.get("error")
        assert expected is None or (isinstance(error, dict) and isinstance(expected, dict) and error.items() >= expected.items())


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("x.py", "raise SystemExit(1)", "ScriptError"),
        ("x.py", "print('hello')", "OutputError"),
        ("x.py", "print([1])", "OutputError"),
        ("nowhere.py", "", "ScriptNotFoundError"),
        ("../x.py", "", "SecurityError"),
        ("x.txt", "", "InputError"),
    ],
)
async def test_a_scripts_failure_is_a_result(scripts: Scripts, path: str, text: str, kind: str) -> None:
    scripts.write("x.py", text)
    output = await executed(scripts, {"scriptPath": path}, "core:execute-script")
    assert output["success"] is False
    assert isinstance(output["error"], dict)
    assert output["error"]["type"] == kind
    assert "outputData" not in output


async def test_what_it_wrote_on_stderr_is_in_the_details_and_the_logs(scripts: Scripts) -> None:
    scripts.write("x.py", "import sys\nsys.stderr.write('why\\n')\nsys.exit(3)")
    output = await executed(scripts, {"scriptPath": "x.py"})
    assert (output["error"], output["logs"]) == (
        {"type": "ScriptError", "message": "The script exited with code 3: why", "details": "why"},
        ["why"],
    )


async def test_a_path_that_is_refused_stands_in_the_details_as_it_was_given(scripts: Scripts) -> None:
    output = await executed(scripts, {"scriptPath": "../x.py"})
    assert isinstance(output["error"], dict)
    assert output["error"]["details"] == '{"script_path": "../x.py"}'


async def test_without_a_time_of_its_own_a_call_has_the_policys(tmp_path: Path, root: Path) -> None:
    policy = SandboxPolicy(defaults=POLICY.defaults.model_copy(update={"wall_s": 1.0}))
    async with script_service(tmp_path / "brief", root, tmp_path / "brief" / "environments", policy=policy) as scripts:
        scripts.write("x.py", "import time\ntime.sleep(2)\nprint('{}')")
        failed = await executed(scripts, {"scriptPath": "x.py"})
        assert isinstance(failed["error"], dict)
        assert (failed["error"]["type"], failed["error"].get("details")) == ("TimeoutError", '{"timeout_s": 1.0, "cause": "time"}')
        assert (await executed(scripts, {"scriptPath": "x.py", "timeoutMs": 50_000}))["success"] is True


@pytest.mark.parametrize(
    ("tool_id", "params", "answer"),
    [
        ("core:execute-nodejs-script", {"scriptPath": "odd.txt"}, "node"),
        ("core:execute-script", {"scriptPath": "odd.txt", "language": "nodejs"}, "node"),
        ("core:execute-script", {"scriptPath": "plain.mjs"}, "node"),
    ],
)
async def test_the_language_is_said_by_tool_parameter_or_name(
    scripts: Scripts, tool_id: str, params: dict[str, JsonValue], answer: str
) -> None:
    for name in ("odd.txt", "plain.mjs"):
        scripts.write(name, 'process.stdout.write(JSON.stringify({ by: process.versions.bun ? "bun" : "node" }));')
    assert (await executed(scripts, params, tool_id)).get("outputData") == {"by": answer}


@pytest.mark.parametrize("params", [{}, {"scriptPath": 1}, {"scriptPath": "x.py", "timeoutMs": 99}, {"scriptPath": "x.py", "more": 1}])
async def test_bad_parameters_are_a_validation_error(scripts: Scripts, params: dict[str, JsonValue]) -> None:
    with pytest.raises(CallFailed) as caught:
        await executed(scripts, params)
    assert caught.value.error_type is ErrorType.VALIDATION_ERROR


async def test_scripts_do_not_see_each_others_cache(scripts: Scripts) -> None:
    text = "import json, os\nseen = os.listdir('.cache')\nopen(f'.cache/{os.getpid()}', 'w')\nprint(json.dumps({'seen': len(seen)}))"
    for name in ("one.py", "two.py"):
        scripts.write(name, text)
    counts = [(await executed(scripts, {"scriptPath": name})).get("outputData") for name in ("one.py", "one.py", "two.py")]
    assert counts[0] == {"seen": 0}
    assert counts[2] == {"seen": 0}


async def test_a_host_without_a_sandbox_runs_nothing_and_says_why(scripts: Scripts) -> None:
    scripts.write("x.py", "print('{}')")
    nowhere = Executor(scripts.launcher, "No sandbox works here.")
    without = replace(scripts, service=ScriptService(scripts.root, scripts.state, nowhere, scripts.environments))
    output = await executed(without, {"scriptPath": "x.py"})
    assert output["error"] == {"type": "UnavailableError", "message": "No sandbox works here.", "details": '{"program": "sandbox"}'}


async def test_calls_of_one_script_run_beside_each_other(scripts: Scripts) -> None:
    scripts.write("x.py", "import json, sys\njson.dump(json.load(sys.stdin), sys.stdout)")
    outputs = await asyncio.gather(*[executed(scripts, {"scriptPath": "x.py", "inputData": {"n": n}}) for n in range(8)])
    assert [output.get("outputData") for output in outputs] == [{"n": n} for n in range(8)]
