"""The example project of an agent, run as in its README, with a real service."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.native_crash import crashed_at_exit
from tests.system.service_process import ROOT, ServiceProcess

EXAMPLE = ROOT / "docs/examples/agent"
BOUND_S = 120
RUNS = 3


@pytest.fixture
def service(tmp_path: Path) -> Generator[ServiceProcess]:
    service = ServiceProcess(tmp_path / "service", ROOT / "data")
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


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


@pytest.mark.timeout(400)
def test_the_example_prints_what_its_readme_says(service: ServiceProcess, python: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = printed((EXAMPLE / "README.md").read_text("utf-8").partition("It prints:")[2])
    command = [python, "-X", "faulthandler", "main.py", service.temporal_address]
    crashes = 0
    while crashed_at_exit(ran := _run(command, expected)):
        crashes += 1
        with capsys.disabled():
            sys.stderr.write(f"\nWARNING: the example crashed at its exit, when all was printed: {crashes} of at most {RUNS} runs.\n")
        assert crashes < RUNS, ran.stderr
    assert ran.returncode == 0, ran.stderr


def _run(command: list[str], expected: list[tuple[str, object]]) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(command, cwd=EXAMPLE, check=False, capture_output=True, text=True, timeout=BOUND_S)
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
