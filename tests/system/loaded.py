"""Services begin as copies of a process that has loaded the program: loading takes seconds of processor at each start, copying none.

`python -m tests.system.loaded` loads it, and is copied for each order that comes through its standard input.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn, TypedDict

from engine.network.tls import machine_tls, usual_tls
from tests.programs import Program, end_with_us

__all__ = ["Copy", "Process", "start_workers"]

_ROOT = Path(__file__).parents[2]
_LONGEST_ORDER = 1 << 17
_STARTED_WITH = ("LD_PRELOAD", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that only a program sees that is started with them."""

_LOADED = (
    "workers.commands.up",
    "workers.commands.doors",
    "httpcore",
    "anyio._backends._asyncio",
    "engine.roles.providers.anthropic_client",
    "engine.registry.matching.vectors",
    "rjieba",
)
"""Not what is run: that is not to have been imported before. The last three are what a service imports when it needs them."""


class Copy:
    """A process that is no child of ours; to be used as one of `subprocess`. The one that was copied says when it has ended, and how."""

    def __init__(self, pid: int, told: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._told = told

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative when a signal ended it. Raises TimeoutExpired."""
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


Process = subprocess.Popen[bytes] | Copy


class _Order(TypedDict):
    """Where a copy runs, as what, and with which environment."""

    folder: str
    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str]


def start_workers(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    out: IO[bytes],
    err: IO[bytes],
    *,
    program: str = "workers",
    is_copied: bool = True,
) -> Process:
    """`python -m PROGRAM ARGUMENTS`, in a session of its own that ends with ours; a copy is made where its variables allow it."""
    if not is_copied or any(environment.get(name) != _variables().get(name) for name in _STARTED_WITH):
        command = [sys.executable, "-m", program, *arguments]
        return Program(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    order: _Order = {"folder": str(folder), "program": program, "arguments": [*arguments], "environment": environment}
    told, tell = socket.socketpair()
    with tell:
        socket.send_fds(_orders(), [json.dumps(order).encode()], [out.fileno(), err.fileno(), tell.fileno()])
    copy = Copy(int(told.recv(16)), told)
    end_with_us(copy.pid)
    return copy


@cache
def _variables() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(_ROOT)}  # noqa: TID251 - as our children inherit it


@cache
def _orders() -> socket.socket:
    """Where the process that is copied takes its orders; it ends when this is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        loaded = Program([sys.executable, "-m", "tests.system.loaded"], cwd=_ROOT, env=_variables(), stdin=theirs)
    atexit.register(loaded.wait)
    atexit.register(ours.close)
    return ours


def _copied(orders: socket.socket) -> _Order:
    """Returns in each copy, with what it is to be. The one that is copied ends when there are no more orders."""
    begun: dict[int, socket.socket] = {}
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, _wake)
    while True:
        ready, _, _ = select.select([orders, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _tell_ended(begun)
        if orders in ready:
            text, descriptors, _, _ = socket.recv_fds(orders, _LONGEST_ORDER, 3)
            if not text:
                sys.exit()
            out, err, tell = descriptors
            if pid := os.fork():
                begun[pid] = socket.socket(fileno=tell)
                os.close(out)
                os.close(err)
                continue
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (orders, woken, wake, *begun.values()):
                one.close()
            return _begun(json.loads(text), descriptors)


def _wake(_number: int, _frame: FrameType | None) -> None:
    """What wakes is that there is a handler."""


def _tell_ended(begun: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with begun.pop(ended[0]) as tell, suppress(OSError):
                tell.send(str(os.waitstatus_to_exitcode(ended[1])).encode())


def _begun(order: _Order, descriptors: Sequence[int]) -> _Order:
    """As if this process had been started so."""
    os.setsid()
    os.chdir(order["folder"])
    os.environ.clear()  # noqa: TID251 - it has been started with others
    os.environ.update(order["environment"])  # noqa: TID251
    tempfile.tempdir = None
    _show(order["environment"])
    out, err, tell = descriptors
    for place, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
        if descriptor != place:
            os.dup2(descriptor, place)
            os.close(descriptor)
    os.write(tell, str(os.getpid()).encode())
    os.close(tell)
    return order


def _show(environment: Mapping[str, str]) -> None:
    """Where others read what this process was started with, as far as there is room; nothing of ours reads it there any more."""
    begin, end = map(int, Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[47:49])
    told = b"".join(f"{name}={value}\0".encode() for name, value in environment.items() if name.startswith("TOOL_AGENT_"))
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, told, min(len(told), end - begin))


def _run() -> NoReturn:
    for module in _LOADED:
        importlib.import_module(module)
    machine_tls()
    usual_tls()
    gc.collect()
    gc.freeze()
    order = _copied(socket.socket(fileno=0))
    sys.argv = [order["program"], *order["arguments"]]
    runpy.run_module(order["program"], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    _run()
