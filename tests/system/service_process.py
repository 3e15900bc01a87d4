"""The real service as a child process, `python -m workers up`: start, requests, stop, kill, restart."""

import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import httpx
from pydantic import JsonValue

from tests.system.leftovers import processes_of
from tests.system.loaded import Process, start_workers
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.tasks import TaskView
from workers.settings.environment import environment

__all__ = ["ROOT", "Asked", "ServiceProcess", "child_environment", "run_tool", "settings_beside"]

ROOT = Path(__file__).parents[2]
_START_S = 90.0
_STOP_S = 60.0
_ADDRESS = re.compile(r"^(API|Temporal UI|Temporal) +(\S+)", re.MULTILINE)


def child_environment(state: Path, data: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of a service: free ports, its own state and catalog, and no TOOL_AGENT_ settings of this machine.

    Also sets the settings for the files beside the catalog (`settings_beside`). `TEST_LANES` of this process is the default mode of lanes.
    """
    # Compiling the imports anew at every start would take longer than everything else.
    ours = ("TOOL_AGENT_", "PYTHONDONTWRITEBYTECODE")
    inherited = {name: value for name, value in environment().items() if not name.startswith(ours)}
    own = {
        "FASTAPI_PORT": "0",
        "TEMPORAL_PORT": "0",
        "TEMPORAL_UI_PORT": "0",
        "STATE_DIR": str(state),
        "DATA_DIR": str(data),
        "TEMPORAL_CONFIG": str(ROOT / "temporal-dev.yaml"),
        "TOOL_HEALTH_TIMEOUT_S": "15",
        **({"LANES": lanes} if (lanes := inherited.get("TEST_LANES")) else {}),
        **settings_beside(data),
        **settings,
    }
    return inherited | {"PYTHONPATH": str(ROOT), "COLUMNS": "300"} | {f"TOOL_AGENT_{name}": value for name, value in own.items()}


def settings_beside(data: Path) -> dict[str, str]:
    """The settings for a sandbox policy and a shared folder of environments beside the catalog, if they exist."""
    places = {"SANDBOX_POLICY": data.with_name("policy.json"), "ENVIRONMENTS_DIR": data.with_name("environments")}
    return {name: str(place.resolve()) for name, place in places.items() if place.exists()}


def run_tool(http: httpx.Client, tool_id: str, params: Mapping[str, JsonValue], key: str | None = None) -> tuple[int, ToolResult]:
    """The HTTP status and the result of a synchronous call."""
    answer = http.post("/run_tool", json={"tool_id": tool_id, "params": params}, headers={"Idempotency-Key": key} if key else {})
    return answer.status_code, ToolResult.model_validate_json(answer.content)


class Asked:
    """A front door, if it is up, and asynchronous calls through it."""

    _http: httpx.Client | None = None

    @property
    def http(self) -> httpx.Client:
        assert self._http is not None, "No service answers."
        return self._http

    def begin(self, tool_id: str, params: Mapping[str, JsonValue]) -> str:
        """Start an asynchronous call. Returns its id."""
        answer = self.http.post("/run_tool", json={"tool_id": tool_id, "params": params, "mode": "async"})
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        return answer.json()["task_id"]

    def task(self, call_id: str) -> TaskView:
        answer = self.http.get(f"/tasks/{call_id}")
        assert answer.is_success, answer.text
        return TaskView.model_validate_json(answer.content)

    def ended_task(self, call_id: str, bound_s: float = 120.0) -> TaskView:
        return wait_until(lambda: task if (task := self.task(call_id)).result else None, f"{call_id} has ended", bound_s)


class ServiceProcess(Asked):
    """One service on the state directory `folder/state`, with its output in `folder/service-N.log`, N counting its starts.

    `settings` are named without their prefix; `program` replaces the service. `api_url`, `temporal_address` and `temporal_ui_url` are those
    of the last start. With `is_copied`, it begins as a copy of a process that has loaded the program.
    """

    is_copied = True

    def __init__(self, folder: Path, data: Path, *, program: str = "workers", **settings: str) -> None:
        self.folder, self.state = folder, folder / "state"
        self._data, self._settings, self._program = data, settings, program
        self._child: Process | None = None
        self._starts = 0
        self._addresses: dict[str, str] = {}

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def environments(self) -> Path:
        """The folder of the environments of tools."""
        return self._data.with_name("environments").resolve()

    @property
    def api_url(self) -> str:
        return self._addresses["API"]

    @property
    def temporal_address(self) -> str:
        return self._addresses["Temporal"]

    @property
    def temporal_ui_url(self) -> str:
        return self._addresses["Temporal UI"]

    @property
    def output(self) -> str:
        """The output of the last start so far."""
        return self._log.read_text("utf-8")

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self, **settings: str) -> None:
        """Start and wait until healthy. Raises AssertionError, with the output, if it is not. `settings` apply from now on."""
        assert self._child is None, "It runs already."
        self._settings |= settings
        self._starts += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            environment = child_environment(self.state, self._data, self._settings)
            self._child = start_workers(["up"], self.folder, environment, log, log, program=self._program, is_copied=self.is_copied)
        try:
            wait_until(self._has_spoken, "the service says that it is ready", _START_S)
            self._http = httpx.Client(base_url=self.api_url, timeout=90, trust_env=False)
            wait_until(self.is_healthy, "the service is healthy")
        except AssertionError as error:
            self.end()
            raise AssertionError(f"{error}\n{self.output}") from error

    def is_healthy(self) -> bool:
        return self.http.get("/health").is_success

    def interrupt(self) -> None:
        """Send SIGINT (Ctrl-C), without waiting for the end."""
        self._running.send_signal(signal.SIGINT)

    def stop(self) -> int:
        """Send SIGINT, and wait for the end. Returns the exit code."""
        self.interrupt()
        return self.wait()

    def wait(self) -> int:
        """Wait until it has ended by itself. Returns the exit code."""
        code = self._running.wait(_STOP_S)
        self._close()
        return code

    def kill(self) -> None:
        """Send SIGKILL to the service process only."""
        self._running.kill()
        self._running.wait(_STOP_S)
        self._close()

    def end(self) -> None:
        """End the service with everything that it started, if it runs."""
        if self._child is None:
            return
        if self._child.poll() is None and self._http is not None:
            self.interrupt()
        try:
            self._child.wait(_STOP_S if self._http is not None else 0)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(_STOP_S)
        self._close()

    def leftovers(self) -> dict[int, str]:
        """Living processes of this service: command lines by process id."""
        return processes_of(self.state)

    def wait_until_nothing_is_left(self) -> None:
        wait_until(lambda: not self.leftovers(), f"no process of {self.state} is left")

    @property
    def _running(self) -> Process:
        assert self._child is not None, "The service does not run."
        return self._child

    @property
    def _log(self) -> Path:
        return self.folder / f"service-{self._starts}.log"

    def _has_spoken(self) -> bool:
        assert self._running.poll() is None, f"It ended with code {self._running.returncode}."
        output = self.output
        self._addresses = dict(_ADDRESS.findall(output))
        return "ready" in output

    def _close(self) -> None:
        self._child = None
        if self._http is not None:
            self._http.close()
            self._http = None
