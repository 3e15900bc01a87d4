"""Subscribes to resources of registered servers while clients are subscribed to them."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from weakref import WeakValueDictionary

from mcp import MCPError

from api.mcp.offers.passing import Passing, is_own
from api.ports import McpSessions
from engine.beside import beside
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.mcp import McpSession

_LOOK_S = 300.0


class Watching:
    """The subscriptions of this process. `Upstreams` renews them if a server restarts."""

    def __init__(self, passing: Passing, sessions: McpSessions) -> None:
        self._passing, self._sessions = passing, sessions
        self._watched = set[str]()
        self._listening = Counter[str]()
        self._leaving = set[asyncio.Task[None]]()
        self._turns = WeakValueDictionary[str, asyncio.Lock]()

    async def watch(self, uri: str) -> None:
        """Subscribe to a resource, if its server supports it. Raises MCPError for a URI that is too long."""
        async with self._turn(uri):
            if uri not in self._watched and await self._ask(uri, "resources/subscribe"):
                self._watched.add(uri)

    async def watch_all(self, session: McpSession) -> None:
        """Watch the subscriptions of a session, perhaps made at another front door, or before this process began."""
        for uri in session.subscriptions:
            if not is_own(uri):
                with suppress(StoreUnavailableError, MCPError):
                    await self.watch(uri)

    @asynccontextmanager
    async def looked_after(self, every_s: float = _LOOK_S) -> AsyncGenerator[None]:
        """Unsubscribe from resources without a session until the block ends: sessions expire, and are closed at other front doors."""
        async with beside("resources that no session has any more", self._look_after(every_s)):
            yield

    async def leave(self, uri: str) -> None:
        """Unsubscribe from a resource, if no client is subscribed to it."""
        async with self._turn(uri):
            if uri not in self._watched or self._listening[uri] or await self._sessions.is_subscribed(uri):
                return
            self._watched.discard(uri)
            await self._ask(uri, "resources/unsubscribe")

    async def leave_all(self, session: McpSession) -> None:
        """Leave the subscriptions of a closed session."""
        await self._leave_each(session.subscriptions)

    @asynccontextmanager
    async def listening(self, uris: Sequence[str]) -> AsyncGenerator[None]:
        """As `watch`, until the block ends."""
        self._listening.update(uris)
        try:
            for uri in uris:
                await self.watch(uri)
            yield
        finally:
            self._listening -= Counter(uris)
            leaving = asyncio.create_task(self._leave_each(uris), name="resources that nothing listens to")
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            # A client that goes away cancels this.
            await asyncio.shield(leaving)

    async def _look_after(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            await self._leave_each(tuple(self._watched))

    async def _leave_each(self, uris: Sequence[str]) -> None:
        for uri in uris:
            with suppress(StoreUnavailableError):
                await self.leave(uri)

    async def _ask(self, uri: str, method: str) -> bool:
        """Whether a server has agreed."""
        if (place := await self._passing.place_of(uri)) is None:
            return False
        try:
            await self._passing.ask(place, method, {"uri": uri})
        except MCPError:
            return False
        return True

    def _turn(self, uri: str) -> asyncio.Lock:
        return self._turns.setdefault(uri, asyncio.Lock())
