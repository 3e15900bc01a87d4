"""Runs built-in tools, in the engine's process."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import JsonValue

from engine.runtimes.builtin.tool import BuiltinTool, ToolContext
from engine.runtimes.failures import CallFailed, NotSent, StartFailed
from engine.runtimes.runtime import Progress, Running, ToolRequest, Unstarted
from engine.runtimes.scripts.service import ScriptService
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import BuiltinSource


class BuiltinRuntime(Unstarted):
    """The runtime of BuiltinSource."""

    def __init__(self, tools: Mapping[str, BuiltinTool], scripts: ScriptService | None = None) -> None:
        self._tools, self._scripts = tools, scripts

    async def start(self, tool: ToolManifest, source: BuiltinSource, progress: Progress) -> Running:
        if source.handler not in self._tools:
            raise StartFailed(ErrorType.EXECUTOR_NOT_FOUND, f"{tool.tool_id!r}: {self._missing(source)}")
        progress(f"{source.handler} is built in")
        return Running(endpoint=f"builtin:{source.handler}", started_at=datetime.now(UTC))

    def ends_with_call(self, running: Running) -> bool:
        tool = self._tools.get(running.endpoint.removeprefix("builtin:"))
        return tool is not None and tool.starts_processes

    async def call(self, running: Running, source: BuiltinSource, request: ToolRequest) -> JsonValue:  # noqa: ARG002 - the source says it all
        tool = self._tools.get(source.handler)
        if tool is None:
            raise NotSent(ErrorType.EXECUTOR_NOT_FOUND, self._missing(source))
        limit = asyncio.timeout(request.timeout_s)
        try:
            async with limit:
                return await tool.invoke(request.params, ToolContext.of(tool.manifest, request, self._scripts))
        except TimeoutError as error:
            if not limit.expired():
                raise
            harmless = tool.manifest.side_effect_scope is SideEffectScope.NONE
            raise CallFailed(
                ErrorType.TIMEOUT,
                f"{source.handler!r} did not answer within {request.timeout_s:g} s.",
                {"timeout_s": request.timeout_s},
                "failed" if harmless else "unknown",
            ) from error

    def _missing(self, source: BuiltinSource) -> str:
        return f"There is no built-in handler {source.handler!r}; there are: {', '.join(sorted(self._tools))}."
