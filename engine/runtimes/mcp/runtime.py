"""Runs tools of MCP servers."""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

from mcp import MCPError
from pydantic import JsonValue, ValidationError

from engine.runtimes.failures import CallFailed, NotSent, RuntimeFailure, StartFailed, timed_out
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.remote_keys import Secrets, filled, key_of
from engine.runtimes.local.boxed_runs import BoxedRun, BoxedRuns, Launched, LocalSettings, Sandboxing
from engine.runtimes.local.failures import exited
from engine.runtimes.mcp.answers import failure_of, output_of
from engine.runtimes.mcp.codes import FORGOTTEN
from engine.runtimes.mcp.listing import Listing, listing_of
from engine.runtimes.mcp.pipes import Pipes, over_pipes
from engine.runtimes.mcp.programs import program_of
from engine.runtimes.mcp.serving import Server, Up
from engine.runtimes.mcp.session import Session
from engine.runtimes.mcp.web import WebServer, over_web
from engine.runtimes.process.launching import launched
from engine.runtimes.process.processes import Launcher
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import Progress, Running, ToolRequest
from engine.runtimes.variables import variables_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import McpSource

_IDLE_ASK_S = 1.0
_FAR_ASK_S = 5.0
_EXITS_S = 1.0
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_TWICE_AND_ENVELOPE = 3
"""An answer has its structured content once more as text, with its quotes escaped."""

_ENVELOPE_BYTES = 64 * 1024
_MOST_LINE_BYTES = 64 * 1024 * 1024
_TOLD_CHARACTERS = 500


class McpRuntime:
    """The runtime of McpSource. What it has started ends with this process."""

    def __init__(
        self,
        settings: LocalSettings,
        launcher: Launcher,
        sandboxing: Sandboxing,
        http: HttpExchange,
        secrets: Secrets,
        projects: Projects | None = None,
    ) -> None:
        self._settings, self._environments, self._http, self._secrets = settings, sandboxing.environments, http, secrets
        self._boxed = BoxedRuns(settings, launcher, sandboxing, projects)
        self._most_bytes = min(_TWICE_AND_ENVELOPE * http.max_result_bytes + _ENVELOPE_BYTES, _MOST_LINE_BYTES)

    async def start(self, tool: ToolManifest, source: McpSource, progress: Progress) -> Running:
        if source.url is not None:
            progress(f"connecting to the server of {tool.tool_id}")
            server = await self._reached(source, source.url)
            return Up(endpoint=source.url.partition("?")[0], started_at=datetime.now(UTC), server=server)
        server, pid = await self._started(tool, source, progress)
        return Up(endpoint=f"stdio:{pid}", started_at=datetime.now(UTC), pid=pid, server=server)

    async def is_alive(self, running: Running) -> bool:
        return _server_of(running).is_alive

    async def is_idle(self, running: Running, source: McpSource) -> bool:
        """Whether it answers. It was told of what was cancelled, and that it has stopped is not to be seen."""
        server = _server_of(running)
        return source.url is not None or (server.session.open_calls == 0 and await server.session.answers(_IDLE_ASK_S))

    async def call(self, running: Running, source: McpSource, request: ToolRequest) -> JsonValue:
        server = _server_of(running)
        if not server.is_alive:
            raise NotSent(ErrorType.UNAVAILABLE, "The server has ended.", {"endpoint": running.endpoint})
        with server.noted(request):
            return await self._answer(server, source, request)

    async def stop(self, running: Running) -> None:
        server = _server_of(running)
        await server.stop(self._settings.stop_grace_s)
        await server.close()

    async def ended(self, running: Running) -> str:
        server = _server_of(running)
        how = await server.ended()
        await server.close()
        return how

    async def listed(self, tool: ToolManifest, source: McpSource, progress: Progress) -> Listing:
        """What the server of a source offers, which is up for that alone. Raises StartFailed, CallFailed."""
        running = await self.start(tool, source, progress)
        try:
            return await self.list_tools(running)
        finally:
            await self.stop(running)

    async def list_tools(self, running: Running) -> Listing:
        """What the server offers. Raises CallFailed."""
        server = _server_of(running)
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                return await listing_of(server.session)
        except TimeoutError:
            raise timed_out(self._settings.start_timeout_s) from None
        except MCPError as error:
            raise _explained(server, failure_of(error, server.secrets)) from error

    async def _answer(self, server: Server, source: McpSource, request: ToolRequest) -> JsonValue:
        is_there = await asyncio.to_thread(request.output_dir.is_dir)
        # As HTTP tools get them in headers.
        meta = {"tool-agent/call-id": request.call_id, "tool-agent/output-dir": str(request.output_dir) if is_there else _TMP}
        try:
            async with asyncio.timeout(request.timeout_s):
                result = await server.session.call(source.tool_name, dict(request.params), request.call_id, meta, request.progress)
        except TimeoutError:
            await asyncio.shield(_end_if_mute(server))
            raise timed_out(request.timeout_s) from None
        except MCPError as error:
            if error.code == FORGOTTEN:
                server.session.forsake()
            raise _explained(server, failure_of(error, server.secrets)) from error
        except ValidationError as error:
            told = str(error)[:_TOLD_CHARACTERS]
            raise CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, f"The server's answer is no result of a tool: {told}") from error
        return await asyncio.to_thread(output_of, result, self._http.max_result_bytes, server.secrets)

    async def _reached(self, source: McpSource, url: str) -> Server:
        whole, keys = filled(url, self._secrets)
        key = key_of(source.remote_api_key, self._secrets)
        public = self._http.public if source.only_public else None
        headers = partial(self._headers, source)
        web = WebServer(whole, source.transport == "sse", headers, self._http.tls, public, self._most_bytes, self._http.max_result_values)
        secrets = (key, *keys) if key else keys
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                return Server(await Session.open(partial(over_web, web)), secrets=secrets)
        except TimeoutError:
            raise _mute(url.partition("?")[0], self._settings.start_timeout_s, "") from None
        except MCPError as error:
            failure = failure_of(error, secrets)
            if isinstance(failure, NotSent):
                raise StartFailed(failure.error_type, failure.message, failure.details) from error
            raise _strange(url.partition("?")[0], failure.message, "") from error
        except (RuntimeError, ValidationError) as error:
            raise _strange(url.partition("?")[0], str(error), "") from error

    def _headers(self, source: McpSource) -> Mapping[str, str]:
        """Raises NotSent."""
        key = key_of(source.remote_api_key, self._secrets)
        return {source.auth_header: f"{source.auth_scheme} {key}".strip()} if key else {}

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
            session = await self._opened(pipes, begun, tool.tool_id)
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

    async def _opened(self, pipes: Pipes, begun: Launched, tool_id: str) -> Session:
        """Raises StartFailed."""
        process = begun.process
        over = partial(over_pipes, pipes, self._most_bytes, self._http.max_result_values, process.stdout.add)
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                return await Session.open(over)
        except TimeoutError:
            if process.has_ended:
                raise await exited(process, tool_id) from None
            raise _mute(tool_id, self._settings.start_timeout_s, _log_of(begun)) from None
        except (MCPError, RuntimeError, ValidationError) as error:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.exited(), _EXITS_S)
            if process.has_ended:
                raise await exited(process, tool_id) from error
            raise _strange(tool_id, str(error), _log_of(begun)) from error


def _server_of(running: Running) -> Server:
    if not isinstance(running, Up):
        raise TypeError("It was not started here.")
    return running.server


async def _end_if_mute(server: Server) -> None:
    """A server that answers nothing would fail every call. The next call starts it anew."""
    patience_s = _IDLE_ASK_S if server.launched is not None else _FAR_ASK_S
    if not server.session.open_calls and not await server.session.answers(patience_s):
        await server.session.close()


def _made(tool_id: str) -> Pipes:
    try:
        return Pipes.make()
    except OSError as error:
        raise StartFailed(ErrorType.UNAVAILABLE, f"The tool {tool_id!r} cannot be launched: {error}") from error


async def _abandon(begun: Launched) -> None:
    await begun.process.kill()
    await begun.stack.aclose()
    begun.audited.ended()


def _explained(server: Server, failure: RuntimeFailure) -> RuntimeFailure:
    """With the end of the server's log, where it is not known what became of the call."""
    if isinstance(failure, CallFailed) and failure.outcome == "unknown" and server.log:
        failure.explain(stderr=server.log)
    return failure


def _log_of(begun: Launched) -> str:
    """What it wrote: also where messages should be."""
    process = begun.process
    return "\n".join([*process.stdout.last_lines(10), *process.stderr.last_lines(10)])


def _mute(name: str, waited_s: float, log: str) -> StartFailed:
    message = f"The MCP server of {name!r} did not answer `initialize` within {waited_s:g} s."
    return StartFailed(ErrorType.UNAVAILABLE, message, {"waited_s": waited_s, "stderr": log})


def _strange(name: str, said: str, log: str) -> StartFailed:
    message = f"The MCP server of {name!r} answered `initialize` with what is no such answer: {said[:_TOLD_CHARACTERS]}"
    return StartFailed(ErrorType.UNAVAILABLE, message, {"stderr": log})
