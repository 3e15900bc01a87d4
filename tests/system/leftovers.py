"""Finding every process of a service: by the owner's mark, or by its state directory in environment or command line."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

from engine.runtimes.process.ownership import Owner

__all__ = ["is_alive", "pid_of_temporal", "processes_of"]


def processes_of(state: Path) -> dict[int, str]:
    """Command lines by process id: the service, its guardian, its Temporal server, tools and all that these have started."""
    signs = (str(state), Owner.state_of(state))
    return {process.pid: told for process in psutil.process_iter() if (told := _told(process, signs))}


def pid_of_temporal(state: Path) -> int:
    """The embedded server of this state directory. Raises AssertionError unless there is exactly one."""
    found = [pid for pid, command in processes_of(state).items() if "start-dev" in command and "setpriv" not in command.split()[0]]
    assert len(found) == 1, found
    return found[0]


def is_alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def _told(process: psutil.Process, signs: tuple[str, ...]) -> str | None:
    # One that has gone meanwhile, or is a zombie, is not there.
    with suppress(psutil.Error, OSError):
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return None
        command = " ".join(process.cmdline())
        known = [command, *process.environ().values()]
        return command if any(sign in text for sign in signs for text in known) else None
    return None
