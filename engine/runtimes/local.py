"""Runs a uv project of this machine as a server on a free port."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from engine.runtimes.environments import Environments
from engine.runtimes.failures import StartFailed
from engine.runtimes.http_exchange import HttpExchange, Target
from engine.runtimes.ports import LOOPBACK, free_port, is_free
from engine.runtimes.processes import Launcher, Process, exit_text
from engine.runtimes.projects import Projects
from engine.runtimes.readiness import Exited, NotOurs, Ready, Unhealthy, await_ready
from engine.runtimes.runtime import Progress, Running, ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource

__all__ = ["LocalRuntime", "LocalSettings"]

_PORT_TRIES = 3
_TOLD_LINES = 20
_IDLE_ASK_S = 1.0
_TAKEN = ("address already in use", "only one usage of each socket address")
_OK = 200


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """`data` is the folder projects are under; `state` the state directory, `ports` gives ports to try. Times are in seconds."""

    data: Path
    state: Path
    ports: Callable[[], int] = free_port
    start_timeout_s: float = 30.0
    stop_grace_s: float = 5.0


class LocalRuntime:
    """The runtime of LocalSource. Holds the processes it has started; they end with this process."""

    def __init__(
        self, settings: LocalSettings, launcher: Launcher, environments: Environments, http: HttpExchange, projects: Projects | None = None
    ) -> None:
        self._settings, self._launcher, self._environments, self._http = settings, launcher, environments, http
        self._projects = projects
        self._processes: dict[int, Process] = {}

    async def start(self, tool: ToolManifest, source: LocalSource, progress: Progress) -> Running:
        project = await self._project(tool.tool_id, source, progress)
        python = await self._environments.python_of(project, tool.tool_id, progress)
        progress(f"starting {tool.tool_id}")
        tries = 1 if source.internal_port else _PORT_TRIES
        taken: list[JsonValue] = []
        while len(taken) < tries:
            port = source.internal_port or self._settings.ports()
            if running := await self._start_on(port, project, python, tool, source):
                return running
            taken.append(port)
            progress(f"port {port} is taken by another program")
        raise StartFailed(
            ErrorType.UNAVAILABLE,
            f"The tool {tool.tool_id!r} did not start: its port is taken by another program.",
            {"ports": taken},
        )

    async def is_alive(self, running: Running) -> bool:
        process = self._process(running)
        return process is not None and not process.has_ended

    async def is_idle(self, running: Running, source: LocalSource) -> bool:
        # A tool that does not say how much it works on may go on with what was cancelled: only a plain 0 counts.
        health = await self._http.health(running.endpoint, source.health_path, _IDLE_ASK_S)
        return health is not None and health.status == _OK and health.active == 0

    async def call(self, running: Running, source: LocalSource, request: ToolRequest) -> JsonValue:
        headers = {"X-Output-Dir": str(request.output_dir)}
        return await self._http.call(Target(running.endpoint, source.http_method, source.endpoint_path, headers), request)

    async def stop(self, running: Running) -> None:
        process = self._process(running)
        if process is not None:
            await process.stop(self._settings.stop_grace_s)
            self._processes.pop(process.pid, None)

    async def ended(self, running: Running) -> str:
        process = self._process(running)
        if process is None:
            return "ended"
        code = await process.wait()
        self._processes.pop(process.pid, None)
        return exit_text(code)

    def _process(self, running: Running) -> Process | None:
        return self._processes.get(running.pid) if running.pid is not None else None

    async def _project(self, tool_id: str, source: LocalSource, progress: Progress) -> Path:
        """The project's folder: from the content store when its files are there. Raises StartFailed."""
        if source.content is None:
            project = await asyncio.to_thread(self._data_folder, tool_id, source)
        elif self._projects is not None:
            project = await self._projects.folder_of(source.content, tool_id, progress)
        else:
            message = f"The files of {tool_id!r} are {source.content!r} of a content store, and this host has none."
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"content": source.content})
        await asyncio.to_thread(_insist_on_main, project, tool_id, source)
        return project

    def _data_folder(self, tool_id: str, source: LocalSource) -> Path:
        """Raises StartFailed when it is not where projects may be."""
        roots = [self._settings.data.resolve(), (self._settings.state / "tools").resolve()]
        try:
            project = (roots[0] / source.host_dir).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise StartFailed(ErrorType.SECURITY_ERROR, f"{source.host_dir!r} is no folder name: {error}") from error
        if not any(project.is_relative_to(root) for root in roots):
            raise StartFailed(
                ErrorType.SECURITY_ERROR,
                f"The folder {source.host_dir!r} of the tool {tool_id!r} leads out of the data folder.",
                {"host_dir": source.host_dir},
            )
        return project

    async def _start_on(self, port: int, project: Path, python: Path, tool: ToolManifest, source: LocalSource) -> Running | None:
        """None when another program has the port."""
        if not is_free(port):
            return None
        process = await self._launch(port, project, python, tool)
        ready = False
        try:
            outcome = await await_ready(process, port, source.health_path, self._http, self._settings.start_timeout_s)
            ready = isinstance(outcome, Ready)
        finally:
            if not ready:
                await process.kill()
        match outcome:
            case Ready():
                self._processes[process.pid] = process
                return Running(f"http://{LOOPBACK}:{port}", datetime.now(UTC), process.pid, port)
            case NotOurs():
                return None
            case Exited():
                if any(sign in process.stderr.tail().lower() for sign in _TAKEN):
                    return None
                raise await _exited(process, tool.tool_id)
            case Unhealthy():
                raise _unhealthy(process, tool.tool_id, source.health_path, outcome)

    async def _launch(self, port: int, project: Path, python: Path, tool: ToolManifest) -> Process:
        home = self._settings.state.resolve() / "tools" / tool.tool_id
        environment = {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "PORT": str(port), "TOOL_AGENT_TOOL_ID": tool.tool_id}
        argv = [str(python), "main.py", "--port", str(port)]
        try:
            return await self._launcher.launch(argv, folder=project, logs=home, environment=environment)
        except OSError as error:
            raise StartFailed(ErrorType.UNAVAILABLE, f"The tool {tool.tool_id!r} cannot be launched: {error}") from error


def _insist_on_main(project: Path, tool_id: str, source: LocalSource) -> None:
    if not (main := project / "main.py").is_file():
        raise StartFailed(
            ErrorType.DEPENDENCY_ERROR,
            f"The tool {tool_id!r} has no {main.name} in {source.host_dir!r}.",
            {"host_dir": source.host_dir, "missing": main.name if project.is_dir() else source.host_dir},
        )


async def _exited(process: Process, tool_id: str) -> StartFailed:
    code = await process.wait()
    return StartFailed(
        ErrorType.UNAVAILABLE,
        f"The tool {tool_id!r} {exit_text(code)} while it was starting.",
        {"exit_code": code, "stderr": "\n".join(process.stderr.last_lines(_TOLD_LINES))},
    )


def _unhealthy(process: Process, tool_id: str, path: str, outcome: Unhealthy) -> StartFailed:
    return StartFailed(
        ErrorType.UNAVAILABLE,
        f"The tool {tool_id!r} did not become healthy: {path} did not answer 200 within {outcome.waited_s:g} s ({outcome.last}).",
        {
            "health_path": path,
            "waited_s": outcome.waited_s,
            "last_answer": outcome.last,
            "stderr": "\n".join(process.stderr.last_lines(_TOLD_LINES)),
        },
    )
