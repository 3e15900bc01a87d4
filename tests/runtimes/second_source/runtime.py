"""Fills templates, in this process."""

import asyncio
from datetime import UTC, datetime
from string import Template

from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NotSent, StartFailed
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import Progress, Running, ToolRequest
from tests.runtimes.second_source.source import TemplateSource
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest

__all__ = ["TemplateRuntime"]


class TemplateRuntime:
    def __init__(self, projects: Projects | None) -> None:
        self._projects = projects
        self._read: dict[str, Template] = {}

    async def start(self, tool: ToolManifest, source: TemplateSource, progress: Progress) -> Running:
        if self._projects is None or source.content is None:
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, f"The text of {tool.tool_id!r} cannot be had.")
        folder = await self._projects.folder_of(source.content, tool.tool_id, progress)
        progress(f"reading {tool.tool_id}")
        endpoint = f"template:{source.content}"
        self._read[endpoint] = Template(await asyncio.to_thread((folder / "text.txt").read_text, "utf-8"))
        return Running(endpoint, datetime.now(UTC))

    async def is_alive(self, running: Running) -> bool:
        return running.endpoint in self._read

    async def is_idle(self, running: Running, source: TemplateSource) -> bool:  # noqa: ARG002 - it takes no time
        return await self.is_alive(running)

    async def call(self, running: Running, source: TemplateSource, request: ToolRequest) -> JsonValue:
        template = self._read.get(running.endpoint)
        if template is None:
            raise NotSent(ErrorType.UNAVAILABLE, f"{source.host_dir!r} was stopped.")
        try:
            return {"text": template.substitute(request.params)}
        except KeyError as error:
            raise CallFailed(ErrorType.VALIDATION_ERROR, f"The text needs {error}.", {}) from error

    async def stop(self, running: Running) -> None:
        self._read.pop(running.endpoint, None)
