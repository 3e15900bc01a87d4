"""Calls tools of remote MCP servers over HTTP."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

import httpx
from mcp import MCPError
from mcp.shared.inbound import mcp_param_headers, x_mcp_header_map
from pydantic import JsonValue, ValidationError

from engine.runtimes.failures import CallFailed, NotSent, RuntimeFailure, StartFailed, no_answer, timed_out
from engine.runtimes.http.destination import Judge
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.remote_keys import Secrets, filled, key_of, named_in, with_keys
from engine.runtimes.mcp.answers import answer_of, failure_of, strange_result, told_of
from engine.runtimes.mcp.codes import FORGOTTEN, NOT_SENT, STRANGE
from engine.runtimes.mcp.listing import Listing, listing_of
from engine.runtimes.mcp.oauth.logins import Login, Logins
from engine.runtimes.mcp.offers import STARTED, Changes, offered_by, server_name
from engine.runtimes.mcp.serving import Server, Up
from engine.runtimes.mcp.session import Session
from engine.runtimes.mcp.web import WebServer, over_web
from engine.runtimes.runtime import Offer, Progress, Running, ToolRequest, Vitals
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import Difference
from toolagent.contracts.sources import McpSource
from toolagent.core.texts import shortened

_IDLE_ASK_S = 1.0
_FAR_ASK_S = 5.0
_TWICE_AND_ENVELOPE = 3
"""An answer repeats its structured content as text, with escaped quotes."""

_ENVELOPE_BYTES = 64 * 1024
_MOST_LINE_BYTES = 64 * 1024 * 1024
_TOLD_CHARACTERS = 500


class RemoteMcpRuntime:
    """The runtime of a McpSource with a `url`. Times are in seconds."""

    def __init__(
        self,
        start_timeout_s: float,
        stop_grace_s: float,
        http: HttpExchange,
        secrets: Secrets,
        registered: Judge | None = None,
        logins: Logins | None = None,
    ) -> None:
        """`registered` judges the addresses of registered servers, by default like the public judge; `logins` are their logins."""
        self._registered, self._logins = registered or http.public, logins
        self.changes = Changes()
        self._start_timeout_s, self._stop_grace_s, self._http, self._secrets = start_timeout_s, stop_grace_s, http, secrets
        self._most_bytes = min(_TWICE_AND_ENVELOPE * http.max_result_bytes + _ENVELOPE_BYTES, _MOST_LINE_BYTES)

    async def start(self, tool: ToolManifest, source: McpSource, progress: Progress) -> Running:
        running = await self._up(tool, source, progress)
        self.changes.say(server_name(source, tool.tool_id), STARTED, {})
        return running

    async def _up(self, tool: ToolManifest, source: McpSource, progress: Progress) -> Running:
        """Raises StartFailed."""
        if source.url is None:
            raise StartFailed(ErrorType.EXECUTOR_NOT_FOUND, f"The MCP server of {tool.tool_id!r} is not started here.")
        progress(f"connecting to the server of {tool.tool_id}")
        server = await self._reached(source, source.url, tool.tool_id)
        return Up(endpoint=source.url.partition("?")[0], started_at=datetime.now(UTC), server=server)

    async def is_alive(self, running: Running) -> bool:
        return _server_of(running).is_alive

    async def is_idle(self, running: Running, source: McpSource) -> bool:
        """Whether it answers a ping: it was told of the cancellation, but whether it stopped cannot be seen. Remote ones count as idle."""
        server = _server_of(running)
        return source.url is not None or (server.session.open_calls == 0 and await server.session.answers(_IDLE_ASK_S))

    async def call(self, running: Running, source: McpSource, request: ToolRequest) -> JsonValue:
        server = _alive(running)
        async with server.noted(request):
            return await self._answer(server, source, request)

    async def vitals(self, running: Running, source: McpSource, timeout_s: float) -> Vitals:  # noqa: ARG002 - the connection is what is asked
        session = _server_of(running).session
        is_well = bool(session.open_calls) or await session.answers(timeout_s)
        return Vitals(is_well=is_well, said="" if is_well else f"it did not answer a ping within {timeout_s:g} s", holds=session.open_calls)

    async def stop(self, running: Running) -> None:
        server = _server_of(running)
        await server.stop(self._stop_grace_s)
        await server.close()

    async def ended(self, running: Running) -> str:
        server = _server_of(running)
        how = await server.ended()
        await server.close()
        return how

    async def offered(self, running: Running, source: McpSource, offer: Offer) -> dict[str, JsonValue]:  # noqa: ARG002 - the server is enough
        return await offered_by(_alive(running), offer)

    def not_granted(self, tool: ToolManifest) -> tuple[Difference, ...]:  # noqa: ARG002 - of programs that are started here
        """The rights that a program of this tool requests and does not get here. Raises StartFailed if this host starts no programs."""
        return ()

    def discard(self, tool_id: str) -> None:
        """Removes the folders of a tool that ran here and runs no more. Blocks."""

    async def listed(self, tool: ToolManifest, source: McpSource, progress: Progress) -> Listing:
        """The tools of a source's server, which runs only for this. Raises StartFailed, CallFailed.

        A program is asked for 2026-07-28 first. Some older ones exit then: they are started again, and not asked.
        """
        if source.url is not None or source.revision is not None:
            return await self._listed(tool, source, progress)
        try:
            return await self._listed(tool, source.model_copy(update={"revision": "2026-07-28"}), progress)
        except StartFailed as failure:
            if "exit_code" not in failure.details:
                raise
            return await self._listed(tool, source, progress)

    async def _listed(self, tool: ToolManifest, source: McpSource, progress: Progress) -> Listing:
        running = await self._up(tool, source, progress)
        try:
            listing = await self.list_tools(running)
            if source.url is None:
                listing.revision = "2026-07-28" if _server_of(running).session.is_modern else "2025-11-25"
            return listing
        finally:
            await self.stop(running)

    async def list_tools(self, running: Running) -> Listing:
        """The server's tools. Raises CallFailed."""
        server = _server_of(running)
        try:
            async with asyncio.timeout(self._start_timeout_s):
                return await listing_of(server.session, server.secrets)
        except TimeoutError:
            message = f"The server did not list its tools within {self._start_timeout_s:g} s."
            raise no_answer(message, ErrorType.TIMEOUT, timeout_s=self._start_timeout_s) from None
        except MCPError as error:
            raise _explained(server, failure_of(error, server.secrets)) from error

    async def _answer(self, server: Server, source: McpSource, request: ToolRequest) -> JsonValue:
        # HTTP tools get the same in headers.
        meta: dict[str, JsonValue] = {"tool-agent/call-id": request.call_id, "tool-agent/output-dir": request.written_to}
        try:
            async with asyncio.timeout(request.timeout_s):
                result = await server.session.call(source.tool_name, request, meta, headers_of(request))
        except TimeoutError:
            await asyncio.shield(_end_if_mute(server))
            raise timed_out(request.timeout_s) from None
        except MCPError as error:
            if error.code == FORGOTTEN or (error.code == NOT_SENT and server.launched is not None):
                server.session.forsake()
            raise _explained(server, failure_of(error, server.secrets)) from error
        except ValidationError as error:
            raise strange_result(error) from error
        answer = await asyncio.to_thread(answer_of, result, self._http.max_result_bytes, server.secrets)
        request.dialogue.show(answer.content)
        return answer.output

    async def _reached(self, source: McpSource, url: str, tool_id: str) -> Server:
        (whole, keys), place = filled(url, self._secrets), url.partition("?")[0]
        public = self._registered if source.server is not None else self._http.public if source.only_public else None
        headers = partial(self._headers, source)
        login = self._login(source)
        limits = (self._most_bytes, self._http.max_result_values)
        web = WebServer(whole, source.transport == "sse", headers, public, *limits, login)
        secrets = login.shown if login is not None else list[str]()
        secrets += (*self._keys(source), *keys)
        try:
            async with asyncio.timeout(self._start_timeout_s):
                if public is not None:
                    # For SSE, the SDK would report no connection without the reason.
                    await public.of(httpx.URL(whole))
                noted = partial(self.changes.say, server_name(source, tool_id))
                opened = await Session.open(partial(over_web, web), secrets, noted, modern_first=source.is_modern_first)
                return Server(opened, secrets=secrets)
        except NotSent as refusal:
            raise StartFailed(refusal.error_type, refusal.message, refusal.details) from refusal
        except TimeoutError:
            raise mute(place, self._start_timeout_s, "") from None
        except MCPError as error:
            failure = failure_of(error, secrets)
            if isinstance(failure, NotSent):
                raise StartFailed(failure.error_type, failure.message, failure.details) from error
            if error.code == STRANGE:
                refused = f"The MCP server of {place!r} refuses `initialize`. {failure.message}"
                raise StartFailed(ErrorType.UNAVAILABLE, refused) from error
            raise strange(place, failure.message, "") from error
        except (RuntimeError, ValidationError, httpx.InvalidURL) as error:
            raise strange(place, told_of(error), "") from error

    def _headers(self, source: McpSource) -> Mapping[str, str]:
        """Raises NotSent."""
        key = key_of(source.remote_api_key, self._secrets)
        own = {source.auth_header: f"{source.auth_scheme} {key}".strip()} if key else {}
        return {**with_keys(source.headers, self._secrets), **own}

    def _login(self, source: McpSource) -> Login | None:
        """None for a server that is not registered, or that has a key."""
        if self._logins is None or source.server is None or source.remote_api_key is not None:
            return None
        return None if any(name.lower() == "authorization" for name in source.headers) else self._logins.of(source)

    def _keys(self, source: McpSource) -> tuple[str, ...]:
        """The secrets in its headers; for `Bearer KEY` also the key alone. Raises NotSent."""
        whole = [key_of(source.remote_api_key, self._secrets), *(key for _, _, key in named_in(source.headers, self._secrets))]
        return tuple(dict.fromkeys(part for key in whole if key for part in (key, key.rpartition(" ")[2])))


def mute(name: str, waited_s: float, log: str) -> StartFailed:
    """The server did not answer. `log` is the end of its output."""
    message = f"The MCP server of {name!r} did not answer `initialize` within {waited_s:g} s."
    return StartFailed(ErrorType.UNAVAILABLE, message, {"waited_s": waited_s, "stderr": log})


def strange(name: str, said: str, log: str) -> StartFailed:
    """The server's answer is not MCP."""
    message = f"The MCP server of {name!r} answered `initialize` with something else: {shortened(said, _TOLD_CHARACTERS)}"
    return StartFailed(ErrorType.UNAVAILABLE, message, {"stderr": log})


def headers_of(request: ToolRequest) -> Mapping[str, str]:
    """Headers for parameters that the tool's schema wants in headers too, for servers of 2026-07-28."""
    mapped = x_mcp_header_map(request.manifest.input_schema) if request.manifest else {}
    return mcp_param_headers(mapped, request.params) if mapped else {}


def _server_of(running: Running) -> Server:
    if not isinstance(running, Up):
        raise TypeError("It was not started here.")
    return running.server


def _alive(running: Running) -> Server:
    server = _server_of(running)
    if not server.is_alive:
        raise NotSent(ErrorType.UNAVAILABLE, "The server has ended.", {"endpoint": running.endpoint})
    return server


async def _end_if_mute(server: Server) -> None:
    """Ends a server that answers nothing, because it would fail every call. The next call starts it anew."""
    patience_s = _IDLE_ASK_S if server.launched is not None else _FAR_ASK_S
    if not server.session.open_calls and not await server.session.answers(patience_s):
        await server.session.close()


def _explained(server: Server, failure: RuntimeFailure) -> RuntimeFailure:
    """Adds the end of the server's log if the outcome of the call is unknown."""
    if isinstance(failure, CallFailed) and failure.outcome == "unknown" and server.log:
        failure.explain(stderr=server.log)
    return failure
