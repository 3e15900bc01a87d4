"""Runs tools of MCP servers."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial

from mcp import MCPError
from pydantic import ValidationError

from engine.runtimes.failures import StartFailed
from engine.runtimes.http.destination import Judge
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.remote_keys import Secrets
from engine.runtimes.local.boxed_runs import BoxedRun, BoxedRuns, LocalSettings, Sandboxing
from engine.runtimes.local.failures import exited
from engine.runtimes.local.launched import Launched
from engine.runtimes.mcp.answers import told_of
from engine.runtimes.mcp.oauth.logins import Logins
from engine.runtimes.mcp.offers import server_name
from engine.runtimes.mcp.pipes import Pipes, over_pipes
from engine.runtimes.mcp.programs import program_of
from engine.runtimes.mcp.remote import RemoteMcpRuntime, mute, strange
from engine.runtimes.mcp.serving import Server, Up
from engine.runtimes.mcp.session import Session
from engine.runtimes.process.launching import launched
from engine.runtimes.process.processes import Launcher
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import Progress, Running
from engine.runtimes.variables import variables_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import Difference
from toolagent.contracts.sources import McpSource

_EXITS_S = 1.0


class McpRuntime(RemoteMcpRuntime):
    """The runtime of McpSource. The servers that it has started end with this process."""

    def __init__(
        self,
        settings: LocalSettings,
        launcher: Launcher,
        sandboxing: Sandboxing,
        http: HttpExchange,
        secrets: Secrets,
        projects: Projects | None = None,
        registered: Judge | None = None,
        logins: Logins | None = None,
    ) -> None:
        super().__init__(settings.start_timeout_s, settings.stop_grace_s, http, secrets, registered, logins)
        self._environments, self._boxed = sandboxing.environments, BoxedRuns(settings, launcher, sandboxing, projects)

    async def _up(self, tool: ToolManifest, source: McpSource, progress: Progress) -> Running:
        if source.url is not None:
            return await super()._up(tool, source, progress)
        server, pid = await self._started(tool, source, progress)
        return Up(endpoint=f"stdio:{pid}", started_at=datetime.now(UTC), pid=pid, server=server)

    def not_granted(self, tool: ToolManifest) -> tuple[Difference, ...]:
        return self._boxed.sandbox(tool.tool_id).grant(tool.security_context).account.differences

    def discard(self, tool_id: str) -> None:
        self._boxed.discard(tool_id)

    async def _started(self, tool: ToolManifest, source: McpSource, progress: Progress) -> tuple[Server, int]:
        sandbox = self._boxed.sandbox(tool.tool_id)
        given = variables_of(source, tool.tool_id, self._secrets)
        program = await program_of(source, tool.tool_id, self._boxed, self._environments, progress)
        progress(f"starting {tool.tool_id}")
        variables = {**program.variables, **given.plain, **given.secret}
        pipes = _made(tool.tool_id)
        try:
            run = BoxedRun(
                tool, source, program.command, program.project, program.environment, program.mounts, variables=variables, stdio=pipes.given
            )
            begun = await launched(self._boxed.launch(sandbox, run), _abandon)
        except BaseException:
            pipes.close()
            raise
        finally:
            pipes.close_given()
        failure: StartFailed | None = None
        is_up = False
        try:
            over = partial(over_pipes, pipes, self._most_bytes, self._http.max_result_values, begun.process.stdout.add)
            noted = partial(self.changes.say, server_name(source, tool.tool_id))
            opening = partial(Session.open, over, tuple(given.secret.values()), noted, modern_first=source.is_modern_first)
            session = await self._opened(opening, begun, tool.tool_id)
            is_up = True
        except StartFailed as error:
            failure = error
            raise
        finally:
            if not is_up:
                # A second cancellation must not interrupt the clean-up.
                await asyncio.shield(_abandon(begun))
                pipes.close()
            begun.audited.started(failure)
        return Server(session, begun, tuple(given.secret.values())), begun.process.pid

    async def _opened(self, opening: Callable[[], Awaitable[Session]], begun: Launched, tool_id: str) -> Session:
        """Raises StartFailed."""
        process = begun.process
        try:
            async with asyncio.timeout(self._start_timeout_s):
                return await opening()
        except TimeoutError:
            if process.has_ended:
                raise await exited(process, tool_id) from None
            raise mute(tool_id, self._start_timeout_s, _log_of(begun)) from None
        except (MCPError, RuntimeError, ValidationError) as error:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.exited(), _EXITS_S)
            if process.has_ended:
                raise await exited(process, tool_id) from error
            raise strange(tool_id, told_of(error), _log_of(begun)) from error


def _made(tool_id: str) -> Pipes:
    try:
        return Pipes.make()
    except OSError as error:
        raise StartFailed(ErrorType.UNAVAILABLE, f"The tool {tool_id!r} cannot be launched: {error}") from error


async def _abandon(begun: Launched) -> None:
    await begun.process.kill()
    await begun.stack.aclose()
    begun.audited.ended()


def _log_of(begun: Launched) -> str:
    """The end of its output, on both streams."""
    process = begun.process
    return "\n".join([*process.stdout.last_lines(10), *process.stderr.last_lines(10)])
