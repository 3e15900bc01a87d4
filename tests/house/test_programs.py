"""Programs that tests start end with the test run."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.system.leftovers import is_alive
from tests.system.waiting import wait_until

RUN = """
import subprocess, sys
from tests.programs import Program
child = Program([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""

SHORT = {
    "tests/builtin/test_tls.py": "a command, waited for",
    "tests/cli/test_console_script.py": "a command, waited for",
    "tests/cli/test_making.py": "a command, waited for",
    "tests/cli/test_terminal.py": "a command, waited for",
    "tests/making/inspection/ssh_server.py": "its log is a pipe of ours, at whose end it ends",
    "tests/programs.py": "here",
    "tests/runtimes/test_environments.py": "a command, waited for",
    "tests/runtimes/test_worker_death.py": "a sleeper that the test itself is about",
    "tests/scripts/test_bun.py": "a command, waited for",
    "tests/scripts/test_dependencies.py": "a command, waited for",
    "tests/testing_servers/test_command_line.py": "a server that stops with its output",
    "tests/tools/test_shipped_tools.py": "a command, waited for",
}


def test_a_program_ends_with_the_run_that_started_it(root: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", RUN], cwd=root, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        child = int(run.stdout.readline())
        run.kill()
    wait_until(lambda: not is_alive(child), "the program has ended", 20)


def test_no_test_starts_a_server_in_another_way(root: Path, files: tuple[Path, ...]) -> None:
    tests = [
        path for path in files if path.parts[0] == "tests" and path.suffix == ".py" and path.parts[1] not in {"sandbox", "tool_projects"}
    ]
    sources = {str(path): (root / path).read_text("utf-8") for path in tests}
    suspected = {path: text for path, text in sources.items() if "Popen" in text or "create_subprocess" in text}
    starting = {path for path, text in suspected.items() if any(map(_starts, ast.walk(ast.parse(text))))}
    assert starting - {"tests/house/test_programs.py"} == set(SHORT)


def _starts(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="Popen" | "create_subprocess_exec" | "create_subprocess_shell")):
            return True
        case ast.ClassDef(bases=bases):
            return any("Popen" in ast.unparse(base) for base in bases)
        case _:
            return False
