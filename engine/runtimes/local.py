"""Runs a uv project of this machine as a server in a sandbox, reached through a unix socket."""

import asyncio
import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from engine.runtimes.audit import Audit, NoAudit
from engine.runtimes.call_audit import Audited
from engine.runtimes.failures import CallFailed, StartFailed
from engine.runtimes.http_exchange import HttpExchange, Target
from engine.runtimes.launching import launched
from engine.runtimes.local_failures import came_to, exited, unhealthy, unlocked
from engine.runtimes.ports import free_port
from engine.runtimes.processes import Launcher, Process, exit_text
from engine.runtimes.projects import Projects
from engine.runtimes.readiness import Exited, NotOurs, Ready, Unhealthy, await_ready
from engine.runtimes.request_parts import Places
from engine.runtimes.runtime import Progress, Running, ToolRequest
from engine.runtimes.sandbox.box import Box, LevelUnavailable, Mount
from engine.runtimes.sandbox.egress import Egress, Opening, Way
from engine.runtimes.sandbox.refusals import Refusals
from engine.runtimes.sandbox.sandbox import Grant, Sandbox, run_name
from engine.runtimes.scripts.dependencies import Kind, dependencies_of
from engine.runtimes.scripts.environments import Environment, ScriptEnvironments
from engine.runtimes.scripts.failures import ScriptFailure
from engine.runtimes.scripts.paths import Script
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import Difference
from toolagent.contracts.sources import LocalSource, ScriptLanguage
from toolagent.core.shared_processes import name_inside, place_of

__all__ = ["LocalRuntime", "LocalSettings", "Sandboxing"]

_IDLE_ASK_S = 1.0
_OK = 200
_PORT = 8000
"""Of the sandbox's own loopback, where nobody else is."""

_HOME = Path("/home/tool")
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_LOCKED = (Kind.REQUIREMENTS_LOCK, Kind.UV_LOCK, Kind.INLINE_LOCK)


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """`data` is the folder projects are under, `state` the state directory, `calls` where the files of calls are. Times are in seconds.

    `observed`: of tools that may reach no host it is known, too, which they ask for.
    """

    data: Path
    state: Path
    calls: Path
    host: str = ""
    start_timeout_s: float = 30.0
    stop_grace_s: float = 5.0
    observed: bool = False


@dataclass(frozen=True, slots=True)
class Sandboxing:
    """How tools are kept apart. `sandbox` is the reason where there is none; `variables` are those of the host that may be granted."""

    sandbox: Sandbox | str
    egress: Egress
    environments: ScriptEnvironments
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    audit: Audit = field(default_factory=NoAudit)


@dataclass(slots=True)
class _Server:
    """A tool that serves, and all that ends with it."""

    process: Process
    way: Way
    stack: contextlib.AsyncExitStack
    audited: Audited
    calls: int = 0


class LocalRuntime:
    """The runtime of LocalSource. Holds the processes it has started; they end with this process."""

    def __init__(
        self, settings: LocalSettings, launcher: Launcher, sandboxing: Sandboxing, http: HttpExchange, projects: Projects | None = None
    ) -> None:
        self._settings, self._launcher, self._sandboxing, self._http = settings, launcher, sandboxing, http
        self._projects = projects
        self._servers: dict[int, _Server] = {}

    async def start(self, tool: ToolManifest, source: LocalSource, progress: Progress) -> Running:
        sandbox = self._sandbox(tool.tool_id)
        project = await self._project(tool.tool_id, source, progress)
        environment = await self._environment(project, tool.tool_id, progress)
        progress(f"starting {tool.tool_id}")
        server = await launched(self._launch(sandbox, project, environment, tool, source), self._end)
        ready = False
        try:
            outcome = await await_ready(server.process, server.way.endpoint, source.health_path, self._http, self._settings.start_timeout_s)
            ready = isinstance(outcome, Ready)
        finally:
            if not ready:
                # Whoever is cancelled a second time must not stop the ending.
                await asyncio.shield(self._end(server))
        match outcome:
            case Ready():
                self._servers[server.process.pid] = server
                server.audited.started()
                return Running(server.way.endpoint, datetime.now(UTC), server.process.pid, source.internal_port or _PORT)
            case Exited() | NotOurs():  # nobody else answers at a socket of ours
                failure = await exited(server.process, tool.tool_id)
            case Unhealthy():
                failure = unhealthy(server.process, tool.tool_id, source.health_path, outcome)
        server.audited.started(failure)
        raise failure

    async def is_alive(self, running: Running) -> bool:
        server = self._server(running)
        return server is not None and not server.process.has_ended

    async def is_idle(self, running: Running, source: LocalSource) -> bool:
        # A tool that does not say how much it works on may go on with what was cancelled: only a plain 0 counts.
        health = await self._http.health(running.endpoint, source.health_path, _IDLE_ASK_S)
        return health is not None and health.status == _OK and health.active == 0

    async def call(self, running: Running, source: LocalSource, request: ToolRequest) -> JsonValue:
        is_there = await asyncio.to_thread(request.output_dir.is_dir)
        headers = {"X-Output-Dir": str(request.output_dir) if is_there else _TMP}
        target = Target(running.endpoint, source.http_method, source.endpoint_path, headers, places=Places.of(source))
        server = self._server(running)
        if server is None:
            return await self._http.call(target, request)
        with _counted(server):
            try:
                with server.audited.call(request):
                    return await self._http.call(target, request)
            except CallFailed as failure:
                if failure.outcome == "unknown":
                    await self._end_if_deaf(server, source, failure)
                raise

    async def stop(self, running: Running) -> None:
        server = self._server(running)
        if server is not None:
            await server.process.stop(self._settings.stop_grace_s)
            await self._forget(server)

    async def ended(self, running: Running) -> str:
        server = self._server(running)
        if server is None:
            return "ended"
        code = await server.process.wait()
        await self._forget(server)
        return f"{exit_text(code)}{came_to(server.process)}"

    def _server(self, running: Running) -> _Server | None:
        return self._servers.get(running.pid) if running.pid is not None else None

    async def _forget(self, server: _Server) -> None:
        self._servers.pop(server.process.pid, None)
        await server.stack.aclose()
        server.audited.ended()
        await self._http.forget(server.way.endpoint)

    async def _end_if_deaf(self, server: _Server, source: LocalSource, failure: CallFailed) -> None:
        """What lives and takes no connections would fail all that comes. It is the forwarder that takes them, so a call cannot tell."""
        if failure.error_type is not ErrorType.EXECUTION_ERROR or server.calls > 1:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.process.exited(), _IDLE_ASK_S)
        if not server.process.has_ended and await self._http.health(server.way.endpoint, source.health_path, _IDLE_ASK_S) is None:
            await asyncio.shield(self._end(server))

    async def _end(self, server: _Server) -> None:
        await server.process.kill()
        await self._forget(server)

    def _sandbox(self, tool_id: str) -> Sandbox:
        if isinstance(self._sandboxing.sandbox, str):
            raise StartFailed(ErrorType.UNAVAILABLE, f"The tool {tool_id!r} is not run: {self._sandboxing.sandbox}", {"missing": "sandbox"})
        return self._sandboxing.sandbox

    async def _environment(self, project: Path, tool_id: str, progress: Progress) -> Environment:
        """Raises StartFailed (`dependency_error`) when there is no lock or it cannot be installed."""
        try:
            dependencies = await asyncio.to_thread(dependencies_of, Script(project / "main.py", "main.py"), ScriptLanguage.PYTHON)
            if dependencies.kind not in _LOCKED:
                raise unlocked(tool_id)
            return await self._sandboxing.environments.ensure(dependencies, tool_id, progress)
        except ScriptFailure as failure:
            raise failure.as_start_failure from failure

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
        return project.resolve()

    def _data_folder(self, tool_id: str, source: LocalSource) -> Path:
        """Raises StartFailed when it is not where projects may be."""
        roots = [self._settings.data.resolve(), (self._settings.state / "tools").resolve()]
        try:
            project = (roots[0] / source.host_dir).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise StartFailed(ErrorType.SECURITY_ERROR, f"{source.host_dir!r} is no folder name: {error}") from error
        if not any(root in project.parents for root in roots):
            raise StartFailed(
                ErrorType.SECURITY_ERROR,
                f"The folder {source.host_dir!r} of the tool {tool_id!r} is no folder within the data folder.",
                {"host_dir": source.host_dir},
            )
        return project

    async def _launch(self, sandbox: Sandbox, project: Path, environment: Environment, tool: ToolManifest, source: LocalSource) -> _Server:
        port = source.internal_port or (_PORT if sandbox.level.has_own_network else free_port())
        command = (str(environment.folder.python), "main.py", "--port", str(port))
        grant, name = sandbox.grant(tool.security_context), run_name(tool.tool_id)
        logs = self._settings.state.resolve() / "tools" / place_of(tool.tool_id, source)
        refusals = Refusals()
        is_apart, observed = sandbox.level.has_own_network, self._settings.observed
        opening = Opening(grant.enforced.hosts, port=port, tell=refusals.tell, is_apart=is_apart, observed=observed)
        async with contextlib.AsyncExitStack() as stack:
            try:
                stack.enter_context(self._sandboxing.environments.using(environment))
                way = await stack.enter_async_context(self._sandboxing.egress.open(name, opening))
                box, unmet = await asyncio.to_thread(self._box, name, project, environment, tool, source, grant, port)
                boxed = _through(box, way)
                prepared = await sandbox.level.prepare(way.argv(command), boxed)
                process = await self._launcher.launch_boxed(prepared, command, logs=logs)
            except (OSError, LevelUnavailable, ScriptFailure) as error:
                raise StartFailed(ErrorType.UNAVAILABLE, f"The tool {tool.tool_id!r} cannot be launched: {error}") from error
            account = grant.account.model_copy(update={"differences": (*grant.account.differences, *unmet)})
            audited = Audited(self._sandboxing.audit, self._settings.host, tool, command, account, refusals)
            return _Server(process, way, stack.pop_all(), audited)
        raise AssertionError("The block returns or raises.")

    def _box(
        self, name: str, project: Path, environment: Environment, tool: ToolManifest, source: LocalSource, grant: Grant, port: int
    ) -> tuple[Box, tuple[Difference, ...]]:
        """Raises OSError."""
        place = place_of(tool.tool_id, source)
        home, calls = self._settings.state.resolve() / "tools" / place / "home", self._settings.calls.resolve() / place
        for folder in (home, calls):
            folder.mkdir(parents=True, exist_ok=True)
        mounts = [Mount(project, project), *environment.mounts, Mount(home, _HOME, writable=True), Mount(calls, calls, writable=True)]
        asked, unmet = _asked_for(grant)
        host = self._sandboxing.variables
        variables = {variable: host[variable] for variable in grant.enforced.environment if variable in host}
        variables |= {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(_HOME),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PORT": str(port),
            "TOOL_AGENT_TOOL_ID": name_inside(tool.tool_id, source),
        }
        return Box(name, project, grant.enforced.limits, (*mounts, *asked), variables), unmet


@contextlib.contextmanager
def _counted(server: _Server) -> Generator[None]:
    server.calls += 1
    try:
        yield
    finally:
        server.calls -= 1


def _through(box: Box, way: Way) -> Box:
    return replace(box, mounts=(*box.mounts, *way.mounts), environment={**box.environment, **way.environment}, ports=way.ports)


def _asked_for(grant: Grant) -> tuple[list[Mount], tuple[Difference, ...]]:
    """Folders of the host that the policy grants; what is below the project is there anyhow, and cannot be written."""
    mounts: list[Mount] = []
    unmet: list[Difference] = []
    for item, patterns, writable in (("read", grant.enforced.read, False), ("write", grant.enforced.write, True)):
        for pattern in patterns:
            path = Path(pattern.removesuffix("**").removesuffix("*"))
            if path.is_absolute() and path.exists():
                mounts.append(Mount(path, path, writable, is_machines=True))
            elif path.is_absolute() or writable:
                reason = "There is no such folder." if path.is_absolute() else "A local tool's project is read-only; it may write to $HOME."
                unmet.append(Difference(item=item, requested=pattern, reason=reason))
    return mounts, tuple(unmet)


def _insist_on_main(project: Path, tool_id: str, source: LocalSource) -> None:
    if not (main := project / "main.py").is_file():
        raise StartFailed(
            ErrorType.DEPENDENCY_ERROR,
            f"The tool {tool_id!r} has no {main.name} in {source.host_dir!r}.",
            {"host_dir": source.host_dir, "missing": main.name if project.is_dir() else source.host_dir},
        )
