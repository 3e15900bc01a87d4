"""Stops tools that were removed from the registry while they ran, and removes their routes, and the folders of removed MCP servers."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

from engine.disk.leftovers import discard
from engine.runtimes.running.supervisor import Supervisor
from toolagent.contracts.sources import McpSource
from toolagent_service.calls.shared_processes import place_of_process

Registered = Callable[[], Awaitable[Collection[str]]]
"""Returns the ids of all registered tools."""

_BETWEEN_LOOKS_S = 0.5
"""The registry is asked twice: an import removes a tool and adds it again when it moves to another file."""


class Routes(Protocol):
    async def forget(self, tool_id: str, host: str) -> None: ...


class Departures:
    """The departed tools of one host. `servers` gives the names of all registered MCP servers, which have a folder in each of `folders`."""

    def __init__(
        self, supervisor: Supervisor, routes: Routes, registered: Registered, host: str, servers: Registered, folders: Sequence[Path]
    ) -> None:
        self._supervisor, self._routes, self._registered, self._host = supervisor, routes, registered, host
        self._servers, self._folders = servers, folders

    async def end(self) -> tuple[str, ...]:
        """Stops tools that the registry does not know any more; their calls fail. Returns the ids. Raises StoreUnavailableError."""
        gone = await self._unknown(self._supervisor.tool_ids())
        if gone:
            await asyncio.sleep(_BETWEEN_LOOKS_S)
            gone = await self._unknown(gone)
        servers = {server for tool_id in gone for server in self._servers_of(tool_id)}
        for tool_id in gone:
            await self._supervisor.forget(tool_id)
            # Stopping the tool saved a route.
            await self._routes.forget(tool_id, self._host)
        if servers:
            await self._discard(servers - {*await self._servers()})
        return tuple(sorted(gone))

    def _servers_of(self, tool_id: str) -> list[str]:
        route = self._supervisor.route(tool_id)
        sources = route.sources if route is not None else ()
        return [source.server for source in sources if isinstance(source, McpSource) and source.server is not None]

    async def _discard(self, servers: Collection[str]) -> None:
        """Removes the folders of removed servers: a later one of the same name must not inherit them."""
        for folder in (folder / place_of_process(server) for server in servers for folder in self._folders):
            await asyncio.to_thread(discard, folder)

    async def _unknown(self, tool_ids: Collection[str]) -> set[str]:
        return {*tool_ids} - {*await self._registered()} if tool_ids else set()
