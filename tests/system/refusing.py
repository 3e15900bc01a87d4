"""Starts of `python -m workers` that are refused, run concurrently, and their output."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.system.leftovers import processes_of
from tests.system.loaded import Process, start_workers
from tests.system.service_process import child_environment

__all__ = ["Refused", "Start", "refused"]

_BOUND_S = 150.0


@dataclass(frozen=True, slots=True)
class Start:
    """`folder` exists, and gets the state and the output of this start alone. `settings` are named without their prefix."""

    folder: Path
    settings: Mapping[str, str]
    command: str = "up"
    variables: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """`left` are command lines of processes that were left after the end, by process id."""

    code: int
    out: str
    err: str
    left: Mapping[int, str]


def refused(starts: Mapping[str, Start]) -> dict[str, Refused]:
    """The end of each start. Raises subprocess.TimeoutExpired if one has not ended."""
    begun = {name: _begun(start) for name, start in starts.items()}
    until = time.monotonic() + _BOUND_S
    return {name: _ended(starts[name].folder, process, until) for name, process in begun.items()}


def _begun(start: Start) -> Process:
    environment = child_environment(start.folder / "state", start.folder / "data", start.settings) | {**(start.variables or {})}
    with (start.folder / "out").open("wb") as out, (start.folder / "err").open("wb") as err:
        return start_workers([start.command], start.folder, environment, out, err)


def _ended(folder: Path, process: Process, until: float) -> Refused:
    code = process.wait(max(0.0, until - time.monotonic()))
    out, err = ((folder / name).read_text("utf-8") for name in ("out", "err"))
    return Refused(code, out, err, processes_of(folder / "state"))
