"""Ends process groups if this process dies, even by `kill -9`: a small child process watches a pipe."""

import contextlib
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.runtimes.process.ownership import MARK, Owner

_PROGRAM = Path(__file__).with_name("guardian_child.py")
_CLOSE_S = 10.0


class Guardian:
    """One per worker process. Watches any process groups.

    With an `owner` it also ends processes that left their group (daemons) but still have the owner's mark in their environment.
    Its child has its own session, so that a Ctrl-C in the terminal does not reach it.
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
        """The child's process id, while it runs."""
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
        """From now on this process group ends with us. Raises RuntimeError if the guardian was not started."""
        self._groups.add(pgid)
        self._tell(f"add {pgid}")

    def release(self, pgid: int) -> None:
        """Stop watching an ended group: its number may soon belong to another process."""
        self._groups.discard(pgid)
        if self._child is not None:
            self._tell(f"remove {pgid}")

    def close(self) -> None:
        """End the child, which ends every group that is still watched."""
        self._groups.clear()
        self._end_child()

    def _tell(self, line: str) -> None:
        try:
            self._send(line)
        except BrokenPipeError:
            # The guardian's child itself was killed: a new one gets all groups.
            self._end_child()
            self.start()

    def _send(self, line: str) -> None:
        if self._child is None or self._child.stdin is None:
            raise RuntimeError("The guardian was not started.")
        self._child.stdin.write(line.encode() + b"\n")
        self._child.stdin.flush()

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            child.wait(_CLOSE_S)
