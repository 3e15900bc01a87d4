"""Runs inside a build container, as `python -I -S command_child.py VERB …`, with the standard library only.

`idle`: the container's first process, or the only child of it; waits for SIGTERM. `end NAME=MARK [PID]`: ends all processes with that
variable, and process PID with its descendants. `log FILE COMMAND …`: becomes COMMAND, with its output going to FILE.
`given FILE COMMAND …`: becomes COMMAND, with the variables of FILE (`NAME=value`, zero bytes between them) in its environment.
"""

import contextlib
import os
import signal
import sys

_NOT_FOUND = 127
_ROUNDS = 20


def main(verb: str, arguments: list[str]) -> int:
    if verb == "idle":
        return _idle()
    if verb == "log":
        return _log(arguments[0], arguments[1:])
    if verb == "given":
        with open(arguments[0], "rb") as file:  # noqa: PTH123 - pathlib takes longer to import than all of this
            return _become(arguments[1:], dict(entry.split(b"=", 1) for entry in file.read().split(b"\0")))
    return _end(arguments[0].encode(), *map(int, arguments[1:]))


def _idle() -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps orphans
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.sigwait({signal.SIGTERM})
    return 0


def _log(file: str, command: list[str]) -> int:
    os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120 - pathlib takes longer to import than all of this
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(fd, stream)
    with contextlib.suppress(PermissionError):  # it leads a session already
        os.setsid()
    return _become(command)


def _end(mark: bytes, first: int = 0) -> int:
    """Stop processes as they are found, until a pass finds no new one; then kill all. Children of an ended process could not be traced."""
    found: set[int] = set()
    for _ in range(_ROUNDS):
        new = _theirs(mark, found | {first} if first else found) - found
        _signal(new, signal.SIGSTOP)
        found |= new
        if not new:
            break
    _signal(found, signal.SIGKILL)
    return 0


def _theirs(mark: bytes, known: set[int]) -> set[int]:
    """The processes that carry the mark, and those in their sessions or started by them."""
    others = [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != 1]  # noqa: PTH208 - as above
    return {pid for pid in others if pid in known or known & _origin(pid) or _carries(pid, mark)}


def _origin(pid: int) -> set[int]:
    """The parent and the session leader of a process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
        _, parent, _, session, *_ = file.read().rpartition(b")")[2].split()
        return {int(parent), int(session)}
    return set()


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _carries(pid: int, mark: bytes) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - as above
        return mark in file.read().split(b"\0")
    return False


def _become(command: list[str], given: dict[bytes, bytes] | None = None) -> int:
    try:
        os.execvpe(command[0], command, {**os.environb, **(given or {})})  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"{command[0]!r} cannot be run: {error.strerror}\n".encode())
    return _NOT_FOUND


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))
