"""The examples, each in an environment of its own and run as in its README, and the forms of vendors: all with the shared service."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from bench.environments import made_environment
from tests.machine import lacking
from tests.native_crash import crashed_at_exit
from tests.system.service_process import ROOT, ServiceProcess
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.formats import ToolFormat

pytestmark = pytest.mark.timeout(600)

PACKAGE = ROOT / "packages/toolagent"
EXTRAS = {"openai_agents": "openai-agents", "pydantic_ai": "pydantic-ai", "langchain": "langchain"}
"""Of the package, by the folder of the example."""
AGENT = ROOT / "docs/examples/agent"
BOUND_S = 120
RUNS = 3


@pytest.fixture
def http(service: ServiceProcess) -> Generator[ToolAgentHttp]:
    with ToolAgentHttp(service.api_url) as http:
        yield http


def python_with(framework: str) -> Path:
    """An environment that is kept until the example names another version of the framework."""
    requirements = ROOT / "docs/examples" / framework / "requirements.txt"
    package = f"{PACKAGE}[{EXTRAS[framework]}]"
    version = requirements.read_text("utf-8").split("==")[1].strip()
    try:
        return made_environment(f"example-{framework}-{version}", requirements, "--no-compile-bytecode", "-e", package)
    except subprocess.CalledProcessError:
        lacking(f"The packages of {requirements} are not reached")


@pytest.mark.parametrize("framework", EXTRAS)
def test_the_example_of_a_framework_prints_what_its_readme_says(framework: str, service: ServiceProcess) -> None:
    folder = ROOT / "docs/examples" / framework
    command = [str(python_with(framework)), "main.py", service.api_url]
    ran = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=120)
    expected = (folder / "README.md").read_text("utf-8").partition("It prints:")[2]
    assert ran.stdout.strip() == "\n".join(re.findall(r"^\w+: .*$", expected, re.MULTILINE)), ran.stderr


def chat(name: str, arguments: str) -> Mapping[str, object]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_what_a_model_of_each_vendor_wants_called_is_called_and_answered(http: ToolAgentHttp) -> None:
    listed = {form: http.tools_as(form) for form in ToolFormat}
    assert {form: one.names["calculator"] for form, one in listed.items()} == dict.fromkeys(ToolFormat, "calculator")
    params = {"expression": "6 * 7"}
    answers: list[dict[str, JsonValue]] = [
        http.run_openai(chat("calculator", json.dumps(params))),
        http.run_openai({"type": "function_call", "call_id": "call_2", "name": "calculator", "arguments": json.dumps(params)}),
        http.run_anthropic({"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": params}),
    ]
    told = [json.loads(str(answer.get("content", answer.get("output"))))["result"] for answer in answers]
    assert ([answer.get("type", answer.get("role")) for answer in answers], told) == (
        ["tool", "function_call_output", "tool_result"],
        [42] * 3,
    )


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [("calculator", "{", "validation_error"), ("calculator", "{}", "validation_error"), ("nobody", "{}", "tool_not_found")],
)
def test_what_a_model_gets_wrong_is_told_to_it(http: ToolAgentHttp, name: str, arguments: str, error: str) -> None:
    # This client has listed nothing yet.
    assert json.loads(str(http.run_openai(chat(name, arguments))["content"]))["error"]["type"] == error


def test_a_key_makes_one_call_of_two_uses(http: ToolAgentHttp) -> None:
    use = {"type": "tool_use", "id": "toolu_2", "name": "echo", "input": {"message": "once"}}
    assert http.run_anthropic(use, key="toolu_2") == http.run_anthropic(use, key="toolu_2")
    other = http.run_anthropic({**use, "input": {"message": "twice"}}, key="toolu_2")
    assert (other["is_error"], json.loads(str(other["content"]))["error"]["details"]["reason"]) == (True, "idempotency_conflict")


def test_a_service_that_is_away_is_told_to_the_model() -> None:
    with ToolAgentHttp("http://127.0.0.1:9") as nobody:
        answer = nobody.run_anthropic({"type": "tool_use", "id": "toolu_1", "name": "echo", "input": {}})
    assert (answer["is_error"], json.loads(str(answer["content"]))["error"]["type"]) == (True, "unavailable")


@pytest.fixture
def python(tmp_path: Path) -> str:
    """The Python of an environment with `toolagent[temporal]` alone, if this machine's cache has it; otherwise the project's."""
    uv, environment = str(Path(sys.executable).with_name("uv")), tmp_path / "venv"
    interpreter = str(environment / "bin/python")
    subprocess.run([uv, "venv", "-q", "--offline", "--python", sys.executable, str(environment)], check=True)
    package = f"toolagent[temporal] @ {(ROOT / 'packages/toolagent').as_uri()}"
    constraints = str(ROOT / "requirements.lock")
    install = [uv, "pip", "install", "-q", "--offline", "--no-build-isolation", "--python", interpreter, "-c", constraints]
    hatchling = subprocess.run([*install, "hatchling"], check=False, capture_output=True)
    installed = subprocess.run([*install, package], check=False, capture_output=True) if hatchling.returncode == 0 else hatchling
    return interpreter if installed.returncode == 0 else sys.executable


def printed(text: str) -> list[tuple[str, object]]:
    """The output, by name."""
    return [(name, json.loads(value)) for name, value in re.findall(r"^(\w+): (.*)$", text, re.MULTILINE)]


def test_the_example_of_an_agent_prints_what_its_readme_says(
    service: ServiceProcess, python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = printed((AGENT / "README.md").read_text("utf-8").partition("It prints:")[2])
    command = [python, "-X", "faulthandler", "main.py", service.temporal_address]
    crashes = 0
    while crashed_at_exit(ran := _run(command, expected)):
        crashes += 1
        with capsys.disabled():
            sys.stderr.write(f"\nWARNING: the example crashed at its exit, when all was printed: {crashes} of at most {RUNS} runs.\n")
        assert crashes < RUNS, ran.stderr
    assert ran.returncode == 0, ran.stderr


def _run(command: list[str], expected: list[tuple[str, object]]) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(command, cwd=AGENT, check=False, capture_output=True, text=True, timeout=BOUND_S)
    assert printed(ran.stdout) == expected, ran.stderr
    return ran


@pytest.mark.parametrize(
    ("code", "stderr", "forgiven"),
    [
        (0, "", False),
        (1, "", False),
        (-signal.SIGSEGV, "", True),
        (-signal.SIGABRT, "Fatal Python error: PyGILState_Release: …\n  <no Python frame>\n", True),
        (-signal.SIGSEGV, 'Fatal Python error: Segmentation fault\n  File "main.py", line 1 in main\n', False),
    ],
)
def test_only_a_crash_with_nothing_of_python_on_the_stack_is_forgiven(code: int, stderr: str, forgiven: bool) -> None:
    assert crashed_at_exit(subprocess.CompletedProcess([], code, "", stderr)) is forgiven
