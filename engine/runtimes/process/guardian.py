"""Ends process groups when this process dies, even by `kill -9`: one small child that watches a pipe."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.runtimes.process.ownership import MARK, Owner

_PROGRAM = Path(__file__).with_name("guardian_child.py")
_CLOSE_S = 10.0


class Guardian:
    """One per worker process. Knows nothing of tools: any process group may be watched.

    With an `owner` it also ends processes that left their group (a daemon) but still carry the owner's mark in their environment.
    Its child lives in its own session, so that a Ctrl-C in the terminal does not reach it.
    """

    def __init__(self, owner: Owner | None = None) -> None:
        self._mark = [f"{MARK}={owner.mark}"] if owner else []
        self._groups: set[int] = set()
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start the child. Starting twice is no error."""
        if self._child is not None:
            return
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), *self._mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
            start_new_session=True,
        )
        for pgid in self._groups:
            self._send(f"add {pgid}")

    def watch(self, pgid: int) -> None:
        """From now on this process group ends with us. Raises RuntimeError when the guardian was not started."""
        self._groups.add(pgid)
        self._tell(f"add {pgid}")

    def release(self, pgid: int) -> None:
        """The group has ended: its number may soon be another process's."""
        self._groups.discard(pgid)
        if self._child is not None:
            self._tell(f"remove {pgid}")

    def close(self) -> None:
        """End the child, and with it every group that is still watched."""
        child, self._child = self._child, None
        self._groups.clear()
        if child is None:
            return
        _close_pipe(child)
        child.wait(_CLOSE_S)

    def _tell(self, line: str) -> None:
        try:
            self._send(line)
        except BrokenPipeError:
            # The guardian itself was ended: a new one is told everything anew.
            self._bury()
            self.start()

    def _send(self, line: str) -> None:
        if self._child is None or self._child.stdin is None:
            raise RuntimeError("The guardian was not started.")
        self._child.stdin.write(line.encode() + b"\n")
        self._child.stdin.flush()

    def _bury(self) -> None:
        dead, self._child = self._child, None
        if dead is not None:
            _close_pipe(dead)
            dead.wait(_CLOSE_S)


def _close_pipe(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        try:
            child.stdin.close()
        except BrokenPipeError:
            return
