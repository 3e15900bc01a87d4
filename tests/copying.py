"""Processes that begin as copies of one that has imported what they need: importing takes seconds of processor time, copying none.

`python tests/copying.py ADDRESS` is a process of pytest for xdist: it asks for a copy, and ends with it.
"""

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TypedDict

__all__ = ["Copy", "Order", "ask", "listening", "serve"]

_LONGEST_ORDER = 1 << 17


class Order(TypedDict):
    """Where a copy runs, under which name, and with which environment."""

    folder: str
    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str]


class Copy:
    """A process that is not our child, used like one of `subprocess`. The copied process reports its end."""

    def __init__(self, pid: int, told: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._told = told

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, negative after a signal. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            with self._told:
                self.returncode = int(self._told.recv(16))
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def ask(address: str, order: Order, descriptors: Sequence[int]) -> Copy:
    """A copy of the process that serves this address, with these files as standard input, output and error."""
    told = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told.connect(address)
    socket.send_fds(told, [json.dumps(order).encode()], descriptors)
    return Copy(int(told.recv(16)), told)


@contextmanager
def listening() -> Generator[tuple[str, socket.socket]]:
    """An address, and the argument of `serve`. Requests wait until a process serves."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address := f"{folder}/copies")
        listener.listen(64)
        yield address, listener


def serve(listener: socket.socket) -> Order:
    """Returns in each copy, with its order; never in the copied process."""
    begun: dict[int, socket.socket] = {}
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, _wake)
    while True:
        ready, _, _ = select.select([listener, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _tell_ended(begun)
        if listener in ready:
            tell, _ = listener.accept()
            text, descriptors, _, _ = socket.recv_fds(tell, _LONGEST_ORDER, 3)
            if not text:  # it has died before it could ask
                tell.close()
                continue
            if pid := os.fork():
                begun[pid] = tell
                for descriptor in descriptors:
                    os.close(descriptor)
                continue
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (listener, woken, wake, *begun.values()):
                one.close()
            return _begun(json.loads(text), descriptors, tell)


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Does nothing: the handler alone wakes the process."""


def _tell_ended(begun: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with begun.pop(ended[0]) as tell, suppress(OSError):
                tell.send(str(os.waitstatus_to_exitcode(ended[1])).encode())


def _begun(order: Order, descriptors: Sequence[int], tell: socket.socket) -> Order:
    """Make this process look as if it was started so."""
    os.setsid()
    os.chdir(order["folder"])
    os.environ.clear()  # noqa: TID251 - it has been started with others
    os.environ.update(order["environment"])  # noqa: TID251
    tempfile.tempdir = None
    _show(order["environment"])
    for place, descriptor in enumerate(descriptors):
        if descriptor != place:
            os.dup2(descriptor, place)
            os.close(descriptor)
    with tell:
        tell.send(str(os.getpid()).encode())
    return order


def _show(environment: Mapping[str, str]) -> None:
    """Write the command line where other processes read it, as far as there is room; nothing of ours reads it there any more."""
    begin, end = map(int, Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[47:49])
    told = b"".join(f"{name}={value}\0".encode() for name, value in environment.items() if name.startswith("TOOL_AGENT_"))
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, told, min(len(told), end - begin))


if __name__ == "__main__":
    _ours: Order = {"folder": str(Path.cwd()), "program": "pytest", "arguments": [], "environment": {**os.environ}}  # noqa: TID251
    sys.exit(ask(sys.argv[1], _ours, (0, 1, 2)).wait())
