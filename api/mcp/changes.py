"""Tells listening clients of changes of tools and groups."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import structlog
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.subscriptions import event_from_wire
from pydantic import JsonValue

from api.mcp.catalog import ToolCatalog
from api.ports import Groups
from engine.beside import beside
from toolagent.core.failures import StoreUnavailableError

TOOL_URI = "toolagent://tools/"

_LOOK_S = 1.0
_MOST_SAID = 256

_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of the lists. A client names the state that it knows by `event_id`."""

    catalog: int
    groups: str

    @property
    def event_id(self) -> str:
        return f"s.{self.catalog}.{self.groups}"

    @classmethod
    def of(cls, event_id: str) -> "Standing | None":
        kind, _, rest = event_id.partition(".")
        catalog, _, groups = rest.partition(".")
        return cls(int(catalog), groups) if kind == "s" and catalog.isdecimal() and len(catalog) < 20 else None


class Changes:
    """Looks for changes while a client listens."""

    def __init__(self, catalog: ToolCatalog, groups: Groups) -> None:
        self._catalog, self._groups = catalog, groups
        self._standing: Standing | None = None
        self._changed, self._wanted, self._listeners = asyncio.Event(), asyncio.Event(), 0
        self._tools: Mapping[str, str] = {}
        self._turn = asyncio.Lock()
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus)
        self._said: asyncio.Queue[ServerEvent] = asyncio.Queue(_MOST_SAID)

    async def after(self, known: Standing) -> Standing:
        """The state, as soon as it is another than `known`."""
        while self._standing is None or self._standing == known:
            await self._changed.wait()
        return self._standing

    async def versions(self) -> Mapping[str, str]:
        """The active version of each tool. Raises StoreUnavailableError."""
        return (await self._catalog.now()).versions

    def note(self, method: str, params: Mapping[str, JsonValue]) -> None:
        """Note the notification of a registered server that something has changed there."""
        event = event_from_wire(method, params)
        if event is not None and not isinstance(event, ToolsListChanged):
            with suppress(asyncio.QueueFull):
                self._said.put_nowait(event)

    async def _publish(self) -> None:
        while True:
            await self.bus.publish(await self._said.get())

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        async with beside("watch what MCP clients are told of", self._watch(), self._publish()):
            yield

    @asynccontextmanager
    async def heard(self) -> AsyncGenerator[tuple[Standing, Mapping[str, str]]]:
        """Look for changes while a client listens. Yields the state from which on it hears, and the versions of tools in it.

        Raises StoreUnavailableError.
        """
        async with self._turn:
            if not self._listeners:
                # Changes while no client listened are not told.
                self._standing = None
            now = await self._look()
            self._listeners += 1
        self._wanted.set()
        try:
            yield now
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._wanted.clear()

    async def _watch(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                async with self._turn:
                    await self._look()
            except StoreUnavailableError as error:
                _log.info("changes_not_looked_for", reason=str(error))
            await asyncio.sleep(_LOOK_S)

    async def _look(self) -> tuple[Standing, Mapping[str, str]]:
        before, snapshot = self._standing, await self._catalog.now(0.0)
        groups = sorted(group.model_dump_json() for group in await self._groups.list_all())
        standing, tools = Standing(snapshot.number, hashlib.sha256("".join(groups).encode()).hexdigest()[:12]), snapshot.versions
        if standing == before:
            return standing, tools
        changed = [tool_id for tool_id in {*tools, *self._tools} if tools.get(tool_id) != self._tools.get(tool_id)]
        self._standing, self._tools = standing, tools
        woken, self._changed = self._changed, asyncio.Event()
        woken.set()
        if before is not None:
            await self._tell(before, standing, changed)
        return standing, tools

    async def _tell(self, before: Standing, standing: Standing, changed: Sequence[str]) -> None:
        if before.catalog != standing.catalog:
            await self.bus.publish(ToolsListChanged())
            await self.bus.publish(ResourcesListChanged())
            for tool_id in changed:
                await self.bus.publish(ResourceUpdated(uri=f"{TOOL_URI}{tool_id}"))
        if before.groups != standing.groups:
            await self.bus.publish(PromptsListChanged())
