"""uv inspects the host's Python once."""

import subprocess
from pathlib import Path

from engine.making.uv.interpreters import Interpreters
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.programs import Program
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.process.processes import Launcher


def _said(python: Path, cache: Path, uv: Path) -> str:
    """uv's output about its inspection of Python, without a lock."""
    (cache.parent / "nothing.txt").touch()
    command = (str(uv), "pip", "compile", "--quiet", "--python", str(python), "--cache-dir", str(cache), "nothing.txt")
    variables = {"RUST_LOG": "uv_python=trace", "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=cache.parent, env=variables, check=True, capture_output=True, text=True).stderr


async def test_uv_need_not_ask_the_interpreter_again(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    programs = sandbox.environments.programs
    interpreters = Interpreters(Executor(launcher, sandbox.sandbox), programs)
    for name in ("first", "second"):
        await interpreters.put_into(tmp_path / name, tmp_path / "asking")
        assert "skipping query" in _said(programs.python.file, tmp_path / name, programs.uv.file)
    assert "Querying" in _said(programs.python.file, tmp_path / "empty", programs.uv.file)
    assert not (tmp_path / "asking").exists()


async def test_what_cannot_be_asked_is_left_to_uv(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    programs = sandbox.environments.programs
    asking = type(programs)(programs.uv, Program(Path("/usr/bin/true")), None, None, None)
    await Interpreters(Executor(launcher, sandbox.sandbox), asking).put_into(tmp_path / "cache", tmp_path / "asking")
    assert [*(tmp_path / "cache").iterdir()] == []
