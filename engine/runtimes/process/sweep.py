"""Ends orphans: processes with our mark whose worker is gone.

A mark is more reliable than remembered process ids: it also finds the tools' own children, and never an unrelated process that reuses
an id. A process that clears its environment *and* leaves its group is not found.
"""

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.runtimes.process.ownership import MARK, Owner

_ROUNDS = 20
_GONE_S = 5.0
_LOOK_S = 0.005


@dataclass(frozen=True, slots=True)
class Swept:
    """An ended process, and the worker that had started it."""

    pid: int
    name: str
    worker: int


async def sweep(state: Path) -> tuple[Swept, ...]:
    """End all processes of dead workers of this state directory, by SIGKILL. Those of living workers stay.

    Call this at start-up, once the state directory is locked.
    """
    return await asyncio.to_thread(_sweep, Owner.state_of(state))


def _sweep(state: str) -> tuple[Swept, ...]:
    ended: dict[int, Swept] = {}
    for _ in range(_ROUNDS):
        # A process may fork while we look: repeat until none is found.
        found = [(process, owner) for process in psutil.process_iter() if (owner := _orphan_of(process, state))]
        if not found:
            break
        for process, owner in found:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                ended[process.pid] = Swept(process.pid, process.name(), owner.pid)
                process.kill()  # psutil makes sure that it is still the same process
        _wait_until_dead([process for process, _ in found])
    return tuple(ended.values())


def end_run(pgid: int, name: str, mark: str) -> None:
    """End the rest of a process group, and all processes whose variable `name` is `mark`; wait until they are gone."""
    for _ in range(_ROUNDS):
        found = [process for process in psutil.process_iter() if _lives_in(process, pgid) or _variable(process, name) == mark]
        if not found:
            return
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()  # psutil makes sure that it is still the same process
        _wait_until_dead(found)


def _orphan_of(process: psutil.Process, state: str) -> Owner | None:
    mark = _variable(process, MARK)
    owner = Owner.read(mark) if mark else None
    return owner if owner and owner.state == state and not owner.is_alive() else None


def _variable(process: psutil.Process, name: str) -> str | None:
    # A process that is gone, inaccessible, or a zombie does not match.
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get(name)
    return None


def _lives_in(process: psutil.Process, pgid: int) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return os.getpgid(process.pid) == pgid and not _is_dead(process)
    return False


def _is_dead(process: psutil.Process) -> bool:
    try:
        # A zombie is dead: its adoptive parent may reap it late.
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _wait_until_dead(processes: list[psutil.Process]) -> None:
    until = time.monotonic() + _GONE_S
    while time.monotonic() < until and not all(map(_is_dead, processes)):
        time.sleep(_LOOK_S)
