"""The supervisor of a front door that is not a host: for built-in tools and remote ones."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from engine.runtimes.failures import NotSent
from engine.runtimes.running.instances import Key, key_of
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import AnyRuntime
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.routes import ToolRoute

_AGAIN_S = 30.0
"""Pause before an unreachable server is tried again."""


class NoRoutes:
    """Keeps no routes, because calls are placed on hosts alone."""

    async def save(self, route: ToolRoute, version: str) -> None: ...


class DoorSupervisor(Supervisor):
    """`takes` tells which tools are called here."""

    def __init__(self, runtimes: Mapping[str, AnyRuntime], takes: Callable[[ToolEntry], bool]) -> None:
        super().__init__(runtimes, NoRoutes(), "")
        self._takes = takes
        self._connecting: dict[Key, asyncio.Task[None]] = {}
        self._asked_at: dict[Key, float] = {}

    def is_ready(self, entry: ToolEntry) -> bool:
        """Like `Supervisor.is_ready`. Starts to connect a tool that needs a connection, for later calls."""
        if not self._takes(entry):
            return False
        if super().is_ready(entry):
            return True
        self._connect(entry)
        return False

    async def close(self) -> None:
        tasks = [*self._connecting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().close()

    def _connect(self, entry: ToolEntry) -> None:
        key = key_of(entry)
        if key in self._connecting or time.monotonic() - self._asked_at.get(key, float("-inf")) < _AGAIN_S:
            return
        self._asked_at[key] = time.monotonic()
        task = self._connecting[key] = asyncio.create_task(self._connected(entry), name=f"connect {entry.manifest.tool_id}")
        task.add_done_callback(lambda _: self._connecting.pop(key, None))

    async def _connected(self, entry: ToolEntry) -> None:
        with suppress(NotSent):  # the workflow of a call reports the failure
            await self.start(entry, lambda _: None)
