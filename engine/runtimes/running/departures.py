"""Stops tools that were removed from the registry while they ran, and removes their routes, and the folders of removed MCP servers."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from engine.disk.leftovers import discard
from engine.runtimes.running.supervisor import Supervisor
from toolagent.contracts.sources import McpSource, Source
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
        self._left = set[str]()

    async def end(self) -> tuple[str, ...]:
        """Stops tools that the registry does not know any more; their calls fail. Returns the ids. Raises StoreUnavailableError."""
        gone = await self._unknown(self._supervisor.tool_ids())
        if gone:
            await asyncio.sleep(_BETWEEN_LOOKS_S)
            gone = await self._unknown(gone)
        # Remembered, because the database may be away when they are looked at.
        self._left |= {source.server for source in self._sources_of(gone) if isinstance(source, McpSource) and source.server is not None}
        for tool_id in gone:
            await self._supervisor.forget(tool_id)
            # Stopping the tool saved a route.
            await self._routes.forget(tool_id, self._host)
        for server in sorted(self._left):
            await self._discard(server)
            self._left.discard(server)
        return tuple(sorted(gone))

    async def _discard(self, server: str) -> None:
        """Removes the folders of a removed server: a later one of the same name must not inherit them.

        Not if it is registered again, or a tool from elsewhere runs in a process of that name.
        """
        if server in await self._servers():
            return
        if any(source.shared_process == server for source in self._sources_of(self._supervisor.tool_ids())):
            return
        for folder in self._folders:
            await asyncio.to_thread(discard, folder / place_of_process(server))

    def _sources_of(self, tool_ids: Collection[str]) -> Iterator[Source]:
        for tool_id in tool_ids:
            if (route := self._supervisor.route(tool_id)) is not None:
                yield from route.sources

    async def _unknown(self, tool_ids: Collection[str]) -> set[str]:
        return {*tool_ids} - {*await self._registered()} if tool_ids else set()
