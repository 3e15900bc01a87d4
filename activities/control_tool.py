"""Starting, stopping and destroying tools on this host."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.heartbeats import beating
from engine.disk.leftovers import discard
from engine.registry.registry import ToolRegistry
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Progress
from engine.store.routes import RouteTable
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.routes import ControlAction, ToolControl, ToolRoute
from toolagent_service import step_names
from toolagent_service.calls.shared_processes import place_of, place_of_process, place_of_volumes


class ControlTool:
    """Each action may be repeated. In each of `folders` a tool, or the process that tools share, has one of its own; in `volumes` too."""

    def __init__(
        self, registry: ToolRegistry, supervisor: Supervisor, routes: RouteTable, folders: Sequence[Path], host: str, volumes: Path
    ) -> None:
        self._registry = registry
        self._routes, self._host = routes, host
        self._supervisor = supervisor
        self._folders, self._volumes = folders, volumes

    @activity.defn(name=step_names.CONTROL)
    async def control_tool(self, control: ToolControl) -> ToolRoute:
        """The tool's route afterwards. Fails for good, with the error type of the cause, when the tool cannot be started."""
        async with beating() as turn:
            match control.action:
                case ControlAction.START:
                    return await self._start(control.tool_id, turn.say)
                case ControlAction.STOP:
                    return await self._supervisor.stop(control.tool_id)
                case ControlAction.DESTROY:
                    return await self._destroy(control.tool_id)

    async def _destroy(self, tool_id: str) -> ToolRoute:
        """On this host. All others get the same order, so that it does not matter which of them comes first, or dies."""
        await self._require_removable(tool_id)
        # First out of the registry: a call that still waits must not start it again, here or elsewhere.
        await self._registry.destroy(tool_id)
        route = await self._supervisor.stop(tool_id)
        # Stopping it has noted where it is.
        await self._routes.forget(tool_id, self._host)
        for folder in self._folders:
            await asyncio.to_thread(discard, folder / tool_id)
        # Whoever has this id next is another tool.
        await asyncio.to_thread(discard, self._volumes / place_of_volumes(tool_id))
        await self._remove_left_processes()
        return route

    async def _remove_left_processes(self) -> None:
        """What there is of processes that no tool shares any more; on another host, or before we died, the last one may have gone."""
        # First the folders: what is registered after this was looked for has none among them.
        there = await asyncio.to_thread(self._of_processes)
        entries = await self._registry.list_versions()
        places = {place_of(entry.manifest.tool_id, source) for entry in entries for source in entry.sources}
        kept = places | {place_of_volumes(place) for place in places}
        for folder in there:
            if folder.name not in kept:
                await asyncio.to_thread(discard, folder)

    def _of_processes(self) -> list[Path]:
        shared = place_of_process("*")
        return [*self._volumes.glob(f"{shared}.*"), *(found for one in self._folders for found in one.glob(shared))]

    async def _require_removable(self, tool_id: str) -> None:
        entry = await self._registry.entry(tool_id)
        if entry is not None and any(source.traits.of_engine for source in entry.sources):
            message = f"Tool {tool_id!r} is part of the engine and cannot be removed."
            raise ApplicationError(message, type=ErrorType.PERMISSION_DENIED.value, non_retryable=True)

    async def _start(self, tool_id: str, say: Progress) -> ToolRoute:
        entry = await self._registry.entry(tool_id)
        if entry is None:
            raise ApplicationError(f"There is no tool {tool_id!r}.", type=ErrorType.TOOL_NOT_FOUND.value, non_retryable=True)
        try:
            return await self._supervisor.start(entry, say)
        except RuntimeFailure as failure:
            raise ApplicationError(failure.message, failure.details, type=failure.error_type.value, non_retryable=True) from failure
