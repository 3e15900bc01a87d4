"""Starts, stops and destroys tools of this host, by order."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from engine.disk.leftovers import discard
from engine.registry.registry import ToolRegistry
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Progress
from engine.store.routes import RouteTable
from engine.store.sessions import SessionTable, SessionUnreadableError
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.routes import ToolRoute
from toolagent_service.calls.shared_processes import place_of, place_of_process, place_of_volumes


class OrderRefused(Exception):
    """The order cannot be carried out, now or later."""

    def __init__(self, error_type: ErrorType, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


class HostTools:
    """Every order is idempotent. A tool, or a process that tools share, has a folder in each of `folders` and one in `volumes`."""

    def __init__(
        self,
        registry: ToolRegistry,
        supervisor: Supervisor,
        routes: RouteTable,
        folders: Sequence[Path],
        host: str,
        volumes: Path,
        sessions: SessionTable,
    ) -> None:
        self._registry, self._supervisor, self._routes = registry, supervisor, routes
        self._folders, self._volumes, self._host, self._sessions = folders, volumes, host, sessions

    async def start(self, tool_id: str, say: Progress) -> ToolRoute:
        """Raises OrderRefused, RuntimeFailure."""
        entry = await self._registry.entry(tool_id)
        if entry is None:
            raise OrderRefused(ErrorType.TOOL_NOT_FOUND, f"There is no tool {tool_id!r}.")
        return await self._supervisor.start(entry, say)

    async def stop(self, tool_id: str) -> ToolRoute:
        return await self._supervisor.stop(tool_id)

    async def destroy(self, tool_id: str) -> ToolRoute:
        """Destroys the tool on this host. Every other host gets the same order, in any sequence. Raises OrderRefused."""
        await self._require_removable(tool_id)
        # The registry first: a waiting call must not start the tool again, here or elsewhere.
        await self._registry.destroy(tool_id)
        route = await self._supervisor.stop(tool_id)
        # `stop` has saved a route.
        await self._routes.forget(tool_id, self._host)
        for folder in self._folders:
            await asyncio.to_thread(discard, folder / tool_id)
        # A later tool with the same id must not inherit them.
        await asyncio.to_thread(discard, self._volumes / place_of_volumes(tool_id))
        await self._remove_left_processes()
        return route

    async def _remove_left_processes(self) -> None:
        """Removes the folders of processes that no tool shares any more. The last one may have been destroyed on another host."""
        # List the folders first: a tool that is registered later has none among them.
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
        if entry is not None and any(source.traits.handler is not None for source in entry.sources):
            raise OrderRefused(ErrorType.PERMISSION_DENIED, f"Tool {tool_id!r} is part of the engine and cannot be removed.")
        # If another host has carried out the order, the tool has left the registry.
        try:
            living = await self._sessions.living() if entry is not None else ()
        except SessionUnreadableError as unreadable:
            message = f"{unreadable} Its stop may need tool {tool_id!r}: update this host, or wait until the session has ended."
            raise OrderRefused(ErrorType.PERMISSION_DENIED, message) from unreadable
        for request, view in living:
            if tool_id in request.group.needed_tool_ids:
                where = f"/groups/{view.group_id}/sessions/{view.session_id}"
                message = (
                    f"Tool {tool_id!r} may be needed to stop session {view.session_id} of group {view.group_id!r}. Stop that first: "
                    f"POST {where}/stop. If it stays `stopping`, GET {where} says why in `error`: mend the tool of the stop, "
                    "or end at the provider what `launched` names."
                )
                raise OrderRefused(ErrorType.PERMISSION_DENIED, message)
