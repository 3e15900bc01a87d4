"""Runs a project of this machine as a server in a sandbox, behind a unix socket."""

import asyncio
import contextlib
from collections.abc import Generator
from datetime import UTC, datetime

from pydantic import JsonValue

from engine.network.ports import free_port
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.own_servers import own_target
from engine.runtimes.http.readiness import IDLE_ASK_S, Exited, NotOurs, Ready, Unhealthy, await_ready, is_idle, vitals_of
from engine.runtimes.http.remote_keys import Secrets
from engine.runtimes.local.boxed_runs import BoxedRun, BoxedRuns, LocalSettings, Sandboxing
from engine.runtimes.local.environments import local_program
from engine.runtimes.local.failures import exited, unhealthy
from engine.runtimes.local.launched import Launched
from engine.runtimes.process.launching import launched
from engine.runtimes.process.processes import Launcher, came_to, exit_text
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import Progress, Running, ToolRequest, Vitals
from engine.runtimes.variables import variables_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource

_PORT = 8000
"""A port of the sandbox's own loopback, which nothing else uses."""


class LocalRuntime:
    """The runtime of LocalSource. Holds the processes it has started; they end with this process."""

    def __init__(
        self,
        settings: LocalSettings,
        launcher: Launcher,
        sandboxing: Sandboxing,
        http: HttpExchange,
        projects: Projects | None = None,
        secrets: Secrets = lambda _: None,
    ) -> None:
        self._secrets = secrets
        self._settings, self._http, self._environments = settings, http, sandboxing.environments
        self._boxed = BoxedRuns(settings, launcher, sandboxing, projects)
        self._servers: dict[int, Launched] = {}

    async def start(self, tool: ToolManifest, source: LocalSource, progress: Progress) -> Running:
        sandbox = self._boxed.sandbox(tool.tool_id)
        project = await self._boxed.project(tool.tool_id, source.host_dir, source.content, progress)
        program = await local_program(self._environments, project, tool.tool_id, source.host_dir, progress)
        progress(f"starting {tool.tool_id}")
        port = source.internal_port or (_PORT if sandbox.level.has_own_network else free_port())
        command = (*program.command, "--port", str(port))
        given = variables_of(source, tool.tool_id, self._secrets)
        variables = {**program.variables, **given.plain, **given.secret}
        run = BoxedRun(tool, source, command, project, program.environment, program.mounts, port=port, variables=variables)
        server = await launched(self._boxed.launch(sandbox, run), self._end)
        ready = False
        try:
            outcome = await await_ready(server.process, server.way.endpoint, source.health_path, self._http, self._settings.start_timeout_s)
            ready = isinstance(outcome, Ready)
        finally:
            if not ready:
                # A second cancellation must not interrupt the clean-up.
                await asyncio.shield(self._end(server))
        match outcome:
            case Ready():
                self._servers[server.process.pid] = server
                server.audited.started()
                return Running(server.way.endpoint, datetime.now(UTC), server.process.pid, source.internal_port or _PORT)
            case Exited() | NotOurs():  # only the tool answers at this socket
                failure = await exited(server.process, tool.tool_id)
            case Unhealthy():
                failure = unhealthy(server.process, tool.tool_id, source.health_path, outcome)
        server.audited.started(failure)
        raise failure

    async def is_alive(self, running: Running) -> bool:
        server = self._server(running)
        return server is not None and not server.process.has_ended

    async def is_idle(self, running: Running, source: LocalSource) -> bool:
        return await is_idle(running.endpoint, source.health_path, self._http)

    async def vitals(self, running: Running, source: LocalSource, timeout_s: float) -> Vitals:
        return await vitals_of(running.endpoint, source.health_path, self._http, timeout_s)

    async def call(self, running: Running, source: LocalSource, request: ToolRequest) -> JsonValue:
        target = own_target(running.endpoint, source, {"X-Output-Dir": request.written_to}, self._secrets)
        server = self._server(running)
        if server is None:
            return await self._http.call(target, request)
        with _counted(server):
            try:
                async with server.audited.call(request):
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

    def _server(self, running: Running) -> Launched | None:
        return self._servers.get(running.pid) if running.pid is not None else None

    async def _forget(self, server: Launched) -> None:
        self._servers.pop(server.process.pid, None)
        await server.stack.aclose()
        server.audited.ended()
        await self._http.forget(server.way.endpoint)

    async def _end_if_deaf(self, server: Launched, source: LocalSource, failure: CallFailed) -> None:
        """Ends a tool that lives but accepts no connections, which would fail every call. Calls cannot tell: the forwarder accepts."""
        if failure.error_type is not ErrorType.EXECUTION_ERROR or server.calls > 1:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.process.exited(), IDLE_ASK_S)
        if not server.process.has_ended and await self._http.health(server.way.endpoint, source.health_path, IDLE_ASK_S) is None:
            await asyncio.shield(self._end(server))

    async def _end(self, server: Launched) -> None:
        await server.process.kill()
        await self._forget(server)


@contextlib.contextmanager
def _counted(server: Launched) -> Generator[None]:
    server.calls += 1
    try:
        yield
    finally:
        server.calls -= 1
