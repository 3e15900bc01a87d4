"""Runs a script once for each call: JSON on stdin, one JSON value on stdout."""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.failures import NotSent, StartFailed
from engine.runtimes.http.remote_keys import Secrets
from engine.runtimes.projects import Projects, project_of
from engine.runtimes.runtime import Progress, Running, ToolRequest
from engine.runtimes.scripts.commands import Prepared, ScriptCall
from engine.runtimes.scripts.service import ScriptService
from engine.runtimes.variables import variables_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ScriptSource
from toolagent.core.schemas import FILE_PATH, values_of_format


@dataclass(frozen=True, slots=True)
class _Ready:
    tool: ToolManifest
    prepared: Prepared


class ScriptRuntime:
    """The runtime of ScriptSource. A start installs the script's dependencies; no process runs between calls."""

    installs: Literal[True] = True

    def __init__(self, service: ScriptService | None, projects: Projects | None = None, secrets: Secrets = lambda _: None) -> None:
        self._scripts, self._projects, self._secrets = service, projects, secrets
        self._ready: dict[str, _Ready] = {}
        self._count = count(1)

    async def start(self, tool: ToolManifest, source: ScriptSource, progress: Progress) -> Running:
        progress(f"looking for the script of {tool.tool_id}")
        root = await self._root(tool.tool_id, source, progress)
        try:
            prepared = await self._service.prepare(root, source.script_path, source.language, tool.tool_id, progress)
        except ScriptFailure as failure:
            refused = ScriptCall(tool.tool_id, "", tool.tool_id, {}, 0.0, tool.security_context, tool.version)
            self._service.refuse(refused, failure)
            raise failure.as_start_failure from failure
        # A new endpoint each time, because a replaced instance is stopped after its successor has started.
        endpoint = f"script:{tool.tool_id}@{tool.version}#{next(self._count)}"
        self._ready[endpoint] = _Ready(tool, prepared)
        return Running(endpoint, datetime.now(UTC))

    async def is_alive(self, running: Running) -> bool:
        """Whether the next call needs no installation: a script whose requirements have changed is started anew."""
        ready = self._ready.get(running.endpoint)
        return ready is not None and await self._service.is_current(ready.prepared)

    async def is_idle(self, running: Running, source: ScriptSource) -> bool:  # noqa: ARG002 - a call that is over has no process
        return True

    def ends_with_call(self, running: Running) -> bool:  # noqa: ARG002 - every script does
        return True

    async def call(self, running: Running, source: ScriptSource, request: ToolRequest) -> JsonValue:
        ready = self._ready.get(running.endpoint)
        if ready is None:
            raise NotSent(ErrorType.UNAVAILABLE, "The script was taken down before it was run.")
        tool = request.manifest or ready.tool
        given = variables_of(source, tool.tool_id, self._secrets)
        named = values_of_format(tool.input_schema, request.params, FILE_PATH)
        call = ScriptCall(
            tool_id=tool.tool_id,
            version=tool.version,
            call_id=request.call_id,
            own=tool.tool_id,
            params=request.params,
            schema=tool.input_schema,
            wall_s=request.timeout_s,
            context=tool.security_context,
            entry_point=source.entry_point,
            files=tuple(Path(file) for _, file in named),
            output_dir=request.output_dir,
            caller=request.caller,
            variables={**given.plain, **given.secret},
        )
        try:
            return (await self._service.execute(ready.prepared, call, request.progress)).output
        except ScriptFailure as failure:
            raise failure.as_call_failure from failure

    async def stop(self, running: Running) -> None:
        self._ready.pop(running.endpoint, None)

    @property
    def _service(self) -> ScriptService:
        if self._scripts is None:
            raise StartFailed(ErrorType.UNAVAILABLE, "This host executes no scripts.")
        return self._scripts

    async def _root(self, tool_id: str, source: ScriptSource, progress: Progress) -> Path:
        if source.content is None:
            return self._service.root
        return await project_of(self._projects, source.content, tool_id, progress)
