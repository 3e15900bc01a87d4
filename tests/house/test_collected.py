"""A process of pytest is a copy of one that has imported the tests; a failed import is a failed test."""

import subprocess
import sys
from pathlib import Path

from workers.settings.environment import environment

_SETTINGS = '[tool.pytest]\naddopts = ["--import-mode=importlib"]\n'
_CONFTEST = """
from contextlib import ExitStack

from tests.scheduling import collected


def pytest_xdist_setupnodes(config, specs):
    stack = ExitStack()
    config.add_cleanup(stack.close)
    program = stack.enter_context(collected(config.args, config.rootpath))
    for spec in specs:
        spec.python = program
"""


def test_a_test_that_cannot_be_imported_is_an_error_of_the_run(root: Path, tmp_path: Path) -> None:
    files = {
        "pyproject.toml": _SETTINGS,
        "conftest.py": _CONFTEST,
        "tests/test_broken.py": "import no_such_module\n",
        "tests/test_whole.py": "def test_it() -> None: ...\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "tests"]
    checkout = tmp_path / "a checkout"
    checkout.symlink_to(root)
    variables = {**environment(), "PYTHONPATH": str(checkout)}
    ran = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "No module named 'no_such_module'" in ran.stdout
    assert "1 passed, 1 error" in ran.stdout
