"""Processes that are started, found ready, weighed, and ended by their ids."""

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import psutil

from engine.network.ports import LOOPBACK
from workers.settings.environment import environment

_LOOK_S = 0.02
_STOP_S = 30.0
_TOLD = 3000


class NotReadyError(RuntimeError):
    """A process did not come up; the message has its last words."""


class Child:
    """A process of ours with all it starts. `stop` ends it, however it is."""

    def __init__(
        self, command: Iterable[str], folder: Path, name: str, more: Mapping[str, str] | None = None, user: str | None = None
    ) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        # On a leash: what dies with us need not be looked for when we are killed.
        leash = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        # One that is started again goes on writing where the last one ended.
        self._begin = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*leash, *command],
                cwd=folder,
                env=bare_environment() | dict(more or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=user,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """What this life of it has written so far."""
        return self._log.read_bytes()[self._begin :].decode(errors="replace")

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def ready(self, looks_ready: Callable[[], bool], bound_s: float = 60.0) -> None:
        """Wait until it looks ready. Raises NotReadyError."""

        def look() -> bool:
            if self.has_ended:
                raise NotReadyError(f"{self.name} ended with code {self._process.returncode}: {self.output[-_TOLD:]}")
            return looks_ready()

        if not until(look, bound_s):
            raise NotReadyError(f"{self.name} was not ready within {bound_s:g} s: {self.output[-_TOLD:]}")

    def tree(self) -> list[psutil.Process]:
        """This process and all that it has started, directly or not."""
        try:
            root = psutil.Process(self.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """SIGKILL to this process alone."""
        self._process.kill()
        self._process.wait(_STOP_S)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int | None:
        """Ask, wait, insist; what it started and left is killed too. Its exit code; None when it had to be killed."""
        tree = self.tree()
        if not self.has_ended:
            self._process.send_signal(number)
        code: int | None = None
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_S)
        for left in tree:
            with suppress(psutil.NoSuchProcess):
                left.kill()
        return code


def end_in_order(number: int, _frame: object) -> NoReturn:
    """For a signal that would end us at once: stop and remove everything first."""
    sys.exit(128 + number)


def bare_environment() -> dict[str, str]:
    """This process's environment without settings of the service, which are the measurement's own."""
    ours = ("TOOL_AGENT_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in environment().items() if not name.startswith(ours)}


def until(look: Callable[[], bool], bound_s: float) -> bool:
    """Whether it came true within `bound_s` seconds."""
    end = time.monotonic() + bound_s
    while not look():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_S)
    return True


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """User and system time that the living ones have used."""
    total = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def resident_mib(processes: Iterable[psutil.Process]) -> float:
    """Resident memory; pages that processes share count for each of them."""
    total = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / 1_048_576


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do, so that connections that are closing down do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
