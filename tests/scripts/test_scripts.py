"""JSON on stdin, one JSON value on stdout: successes, failures, and their results."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from tests.scripts.harness import MIB, Scripts
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.contracts.sources import ScriptLanguage
from toolagent.core.calls.action import observation_of
from toolagent.core.calls.results import failed

ECHO = "import json, sys\njson.dump(json.load(sys.stdin), sys.stdout)\n"


async def test_a_script_answers_with_what_it_writes(scripts: Scripts) -> None:
    params: dict[str, JsonValue] = {"text": "hé 二\n\u0000", "n": [1, -0.5, None, True], "deep": {"a": {}}, "big": 2**70}
    assert await scripts.code(ECHO, params) == params
    assert scripts.leftovers() == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2]", [1, 2]),
        ("3", 3),
        ("null", None),
        ('  "x"\n', "x"),
        ("{}", {}),
        # A text that was cut in the middle of a character, as JavaScript does it.
        ('{"\\ud83d": "\\ud83d\\ude00\\ud83d"}', {"\ufffd": "😀\ufffd"}),
    ],
)
async def test_any_one_json_value_is_an_answer(scripts: Scripts, text: str, value: JsonValue) -> None:
    assert await scripts.code(f"print({text!r})") == value


async def test_stderr_alone_is_no_failure_and_is_kept_as_the_log(scripts: Scripts) -> None:
    path = scripts.write("code/main.py", "import sys\nsys.stderr.write('one\\ntwo\\n')\nprint(1)")
    reply = await scripts.run(path)
    assert (reply.output, reply.logs) == (1, ("one", "two"))


async def test_a_long_log_is_cut_with_a_note(scripts: Scripts) -> None:
    path = scripts.write("code/main.py", "import sys\nfor n in range(900): sys.stderr.write(f'line {n}\\n')\nprint(1)")
    reply = await scripts.run(path)
    assert reply.logs[:2] == ("[… 700 earlier lines left out]", "line 700")
    assert scripts.runs[-1].truncated == ("stderr",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "print('hello')",
        "print('{}{}')",
        "print('NaN')",
        "print('[1e999]')",
        "print('[1,')",
        "import sys\nsys.stdout.buffer.write(b'\"\\xff\"')",
        "print('[' * 100000)",
    ],
)
async def test_what_is_no_json_is_an_output_error(scripts: Scripts, text: str) -> None:
    failure = await scripts.failing(text)
    assert (failure.kind, failure.error_type) == (ScriptErrorKind.OUTPUT, ErrorType.OUTPUT_VALIDATION_ERROR)


async def test_an_exit_code_is_a_failure_with_what_the_script_said(scripts: Scripts) -> None:
    failure = await scripts.failing("import sys\nprint('{}')\nsys.exit('it broke')")
    assert (failure.kind, failure.error_type) == (ScriptErrorKind.SCRIPT, ErrorType.EXECUTION_ERROR)
    assert (failure.facts, failure.told) == ({"exit_code": 1}, "it broke")
    assert failure.details["original_type"] == "ScriptError"


async def test_a_signal_is_named(scripts: Scripts) -> None:
    failure = await scripts.failing("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert failure.kind is ScriptErrorKind.SCRIPT
    assert "SIGKILL" in failure.message


async def test_a_script_that_sleeps_for_ever_is_ended(scripts: Scripts) -> None:
    failure = await scripts.failing("import time\ntime.sleep(1000)", wall_s=1.0)
    assert (failure.kind, failure.message) == (ScriptErrorKind.TIMEOUT, "Script execution timed out.")
    assert failure.as_call_failure.error_type is ErrorType.TIMEOUT
    assert scripts.leftovers() == []


async def test_a_cancelled_script_is_gone(scripts: Scripts) -> None:
    path = scripts.write(
        "code/main.py", 'import sys, time\nsys.stderr.write(\'::progress:: {"message": "up"}\\n\')\nsys.stderr.flush()\ntime.sleep(1000)'
    )
    running = asyncio.create_task(scripts.run(path))
    async with asyncio.timeout(60):
        while "up" not in scripts.told:  # noqa: ASYNC110 - another process tells it
            await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert scripts.leftovers() == []
    assert (scripts.runs[-1].reply, scripts.runs[-1].failure) == (None, None)


async def test_progress_is_told_and_is_no_log(scripts: Scripts) -> None:
    lines = [
        '::progress:: {"message": "half way", "fraction": 0.5}',
        "::progress:: no json",
        '::progress:: {"fraction": 7}',
        '::progress:: {"message": "cut \\ud83d \\u0000"}',
        "plain",
    ]
    text = f"import sys, time\nfor line in {lines!r}:\n    sys.stderr.write(line + '\\n'); sys.stderr.flush(); time.sleep(0.05)\nprint(1)"
    reply = await scripts.run(scripts.write("code/main.py", text))
    assert {"half way (50%)", "cut \ufffd \ufffd"} <= {*scripts.told}
    assert reply.logs == ("plain",)


async def test_too_large_an_input_is_not_handed_over(scripts: Scripts) -> None:
    failure = await scripts.failing(ECHO, params={"x": "y" * MIB})
    assert (failure.kind, failure.error_type, failure.ran) == (ScriptErrorKind.INPUT, ErrorType.VALIDATION_ERROR, False)
    assert [(run.failure, run.command) for run in scripts.runs] == [(failure, ())]


async def test_a_large_input_arrives_whole(scripts: Scripts) -> None:
    size = MIB - 100
    assert await scripts.code("import json, sys\nprint(len(json.load(sys.stdin)['x']))", {"x": "y" * size}) == size


async def test_stdin_cannot_be_written_to(scripts: Scripts) -> None:
    text = "import os\ntry:\n    os.write(0, b'x' * 10)\n    print(1)\nexcept OSError as error:\n    print(f'\"{error.errno}\"')"
    assert await scripts.code(text) in ("1", "9")  # EPERM, EBADF


async def test_nothing_of_a_path_or_parameter_is_a_command(scripts: Scripts, tmp_path: Path) -> None:
    path = scripts.write("odd; touch HERE; $(id) 'x'/main.py", ECHO)
    assert (await scripts.run(path, {"x": "$(touch /tmp/y)"})).output == {"x": "$(touch /tmp/y)"}
    assert "HERE" not in {name for _, _, names in os.walk(tmp_path) for name in names}


async def test_a_function_is_called_with_the_parameters_and_may_print(scripts: Scripts) -> None:
    text = """
    def add(a, b=1):
        print("noise")
        return {"sum": a + b}
    class C:
        @staticmethod
        async def later(a): return [a]
    """
    path = scripts.write("code/main.py", text)
    reply = await scripts.run(path, {"a": 1, "b": 2}, entry_point="add")
    assert (reply.output, reply.logs) == ({"sum": 3}, ("noise",))
    assert (await scripts.run(path, {"a": 1}, entry_point="C.later")).output == [1]


@pytest.mark.parametrize("name", ["missing", "add.missing", "__import__('os')", "x; import os"])
async def test_a_function_that_is_not_there_is_a_failure(scripts: Scripts, name: str) -> None:
    failure = await scripts.failing("def add(a): return a", entry_point=name)
    assert failure.kind is ScriptErrorKind.SCRIPT
    assert "There is no function" in failure.told


async def test_a_function_that_returns_what_is_no_json_is_a_failure(scripts: Scripts) -> None:
    assert (await scripts.failing("def f(): return {1, 2}", entry_point="f")).kind is ScriptErrorKind.SCRIPT


async def test_node_scripts_and_functions_run(scripts: Scripts) -> None:
    echo = 'import { readFileSync } from "node:fs";\nconsole.log(readFileSync(0, "utf8"));'
    assert (await scripts.run(scripts.write("node/echo.mjs", echo), {"a": [1]}, language=ScriptLanguage.NODEJS)).output == {"a": [1]}
    twice = 'exports.twice = async ({ n }) => { console.log("noise"); process.stdout.write("more\\n"); return { n: 2 * n }; };'
    reply = await scripts.run(scripts.write("node/twice.cjs", twice), {"n": 4}, language=ScriptLanguage.NODEJS, entry_point="twice")
    assert (reply.output, reply.logs) == ({"n": 8}, ("noise", "more"))
    with pytest.raises(ScriptFailure) as caught:
        await scripts.run("node/twice.cjs", {"n": 4}, language=ScriptLanguage.NODEJS, entry_point="thrice")
    assert caught.value.kind is ScriptErrorKind.SCRIPT


async def test_a_script_is_told_whose_call_it_is(scripts: Scripts) -> None:
    text = "import json, os\nprint(json.dumps([os.environ['TOOL_AGENT_TOOL_ID'], os.environ['TOOL_AGENT_CALL_ID']]))"
    assert await scripts.code(text) == ["tool", "call-12345678"]


async def test_an_agent_is_told_of_a_failure_in_the_specified_words(scripts: Scripts) -> None:
    failure = (await scripts.failing("import sys\nsys.exit('why')")).as_call_failure
    error = ToolError(type=failure.error_type, message=failure.message, details=failure.details)
    told = observation_of(failed("call-12345678", "mine:tool", error, datetime.now(UTC)))
    content = "Tool mine:tool failed. Error type: ScriptError. Message: The script exited with code 1: why Details: why"
    assert (told.status, told.content) == ("error", content)
