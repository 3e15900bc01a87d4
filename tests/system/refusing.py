"""What `python -m workers` says when it cannot run: many starts, each a process of its own, that load the program once together.

`python -m tests.system.refusing` reads starts and writes what became of them, as JSON. Loading takes seconds of processor, refusing none.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.system.leftovers import processes_of
from tests.system.service_process import ROOT, child_environment
from workers.__main__ import main
from workers.commands.up import api, up, worker

__all__ = ["Refused", "Start", "refused"]

_BOUND_S = 150.0
_LOADED = (up, worker, api)
"""So that it is there before anything is begun."""
_BROKEN = 70


@dataclass(frozen=True, slots=True)
class Start:
    """`folder` is its own, and there: its state and its output go into it. `settings` are named without their prefix."""

    folder: Path
    settings: Mapping[str, str]
    command: str = "up"
    variables: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """`left` are command lines of processes that were there after its end, by their id."""

    code: int
    out: str
    err: str
    left: Mapping[int, str]


def refused(starts: Mapping[str, Start]) -> dict[str, Refused]:
    """How each of them ended, all side by side. Raises subprocess.SubprocessError when that cannot be said in time."""
    asked = {name: _asked(start) for name, start in starts.items()}
    done = subprocess.run(
        [sys.executable, "-m", "tests.system.refusing"],
        cwd=ROOT,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        timeout=_BOUND_S,
    )
    codes: dict[str, int] = json.loads(done.stdout)
    return {name: _seen(start.folder, codes[name]) for name, start in starts.items()}


def _asked(start: Start) -> dict[str, object]:
    own = child_environment(start.folder / "state", start.folder / "data", start.settings) | {**(start.variables or {})}
    return {"folder": str(start.folder), "command": start.command, "environment": own}


def _seen(folder: Path, code: int) -> Refused:
    out, err = ((folder / name).read_text("utf-8") for name in ("out", "err"))
    return Refused(code, out, err, processes_of(folder / "state"))


def _begun(folder: str, command: str, environment: Mapping[str, str]) -> int:
    """A process that goes on as if it had been started so. Its id."""
    if pid := os.fork():
        return pid
    code = _BROKEN
    try:
        os.environ.clear()  # noqa: TID251 - it has been started with others
        os.environ.update(environment)  # noqa: TID251
        tempfile.tempdir = None
        os.chdir(folder)
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o644), descriptor)
        code = main([command])
    finally:
        if code == _BROKEN:
            traceback.print_exc()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # Whatever happens it does not go on as its parent.
        os._exit(code)


def _run() -> None:
    begun = {name: _begun(**start) for name, start in json.load(sys.stdin).items()}
    codes = {name: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for name, pid in begun.items()}
    sys.stdout.write(json.dumps(codes))


if __name__ == "__main__":
    _run()
