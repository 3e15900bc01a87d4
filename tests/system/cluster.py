"""Processes of several kinds at one Temporal server and one database: `python -m workers worker | api`, each with its own state."""

import re
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from tests.system.leftovers import processes_of
from tests.system.loaded import Process, start_workers
from tests.system.service_process import Asked, child_environment
from tests.system.waiting import wait_until
from toolagent.contracts.hosts import Host, HostListing

__all__ = ["Cluster", "Member", "running_cluster"]

_START_S = 120.0
_STOP_S = 60.0
_SAID = re.compile(r"^(API|host) +(\S+)", re.MULTILINE)


class Member:
    """One process of the cluster, with its output in `folder/output.log`. `kind` is the argument of `python -m workers`.

    `settings` are named without their prefix.
    """

    def __init__(self, kind: str, folder: Path, data: Path, settings: dict[str, str]) -> None:
        self.kind, self.folder, self.state = kind, folder, folder / "state"
        self.environment = child_environment(self.state, data, settings)
        self._child: Process | None = None

    @property
    def output(self) -> str:
        return (self.folder / "output.log").read_text("utf-8")

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def host(self) -> str:
        return dict(_SAID.findall(self.output))["host"]

    @property
    def url(self) -> str:
        return dict(_SAID.findall(self.output))["API"]

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start the process without waiting; `wait_until_ready` waits."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output.log").open("wb") as log:
            self._child = start_workers(self.kind.split(), self.folder, self.environment, log, log)

    def wait_until_ready(self) -> None:
        def is_ready() -> bool:
            assert self._running.poll() is None, self.output
            return "ready (" in self.output

        wait_until(is_ready, f"{self.folder.name} says that it is ready", _START_S)

    def wait(self) -> int:
        """Wait until the process has ended by itself. Returns its exit code."""
        return self._running.wait(_START_S)

    def terminate(self) -> None:
        """Send SIGTERM to this process only, without waiting for its end."""
        self._running.terminate()

    def kill(self) -> None:
        """Send SIGKILL to this process only."""
        self._running.kill()
        self._running.wait(_STOP_S)

    def end(self) -> None:
        """End the process, if it runs, and everything that it started."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        wait_until(lambda: not processes_of(self.state), f"no process of {self.state} is left")

    @property
    def _running(self) -> Process:
        assert self._child is not None, "It was not started."
        return self._child


class Cluster(Asked):
    """Members by name, which share `settings`."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._folder, self._settings = folder, settings
        self._ends = ExitStack()

    def member(self, kind: str, name: str, data: Path | None = None, **settings: str) -> Member:
        """A member that is not started. Without `data` it has no data folder."""
        member = Member(kind, self._folder / name, data or self._folder / "no data folder", {**self._settings, **settings})
        self._ends.callback(member.end)
        return member

    def enter(self, api: Member) -> None:
        """Use the front door of this member, which must be ready."""
        self._http = self._ends.enter_context(httpx.Client(base_url=api.url, timeout=120, trust_env=False))
        wait_until(lambda: self.http.get("/health").is_success, "the front door sees a host", 60.0)

    def hosts(self) -> dict[str, Host]:
        return {host.host: host for host in HostListing.model_validate_json(self.http.get("/hosts").content).hosts}

    def close(self) -> None:
        """End all members, even if one of them fails to end."""
        self._ends.close()


@contextmanager
def running_cluster(folder: Path, **settings: str) -> Generator[Cluster]:
    """A cluster whose members end with the block."""
    cluster = Cluster(folder, settings)
    try:
        yield cluster
    finally:
        cluster.close()
