"""Resources of registered servers that clients have subscribed to: their servers tell of changes as long as there is such a client."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from weakref import WeakValueDictionary

from mcp import MCPError

from api.mcp.offers.passing import Passing, is_own
from api.ports import McpSessions
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.mcp import McpSession

_LOOK_S = 300.0


class Watching:
    """What this process has subscribed to. A server that starts anew is subscribed to again by `Upstreams`."""

    def __init__(self, passing: Passing, sessions: McpSessions) -> None:
        self._passing, self._sessions = passing, sessions
        self._watched = set[str]()
        self._listening = Counter[str]()
        self._leaving = set[asyncio.Task[None]]()
        self._turns = WeakValueDictionary[str, asyncio.Lock]()

    async def watch(self, uri: str) -> None:
        """Have the server whose resource it is tell of changes, as far as it does. Raises MCPError for a URI that is too long."""
        async with self._turn(uri):
            if uri not in self._watched and await self._ask(uri, "resources/subscribe"):
                self._watched.add(uri)

    async def watch_all(self, session: McpSession) -> None:
        """What a session has subscribed to, perhaps at another front door, or before this process was there."""
        for uri in session.subscriptions:
            if not is_own(uri):
                with suppress(StoreUnavailableError, MCPError):
                    await self.watch(uri)

    @asynccontextmanager
    async def looked_after(self, every_s: float = _LOOK_S) -> AsyncGenerator[None]:
        """Until the block ends, what no session has any more is left: sessions expire, and are closed at other front doors."""
        looking = asyncio.create_task(self._look_after(every_s), name="resources that no session has any more")
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def leave(self, uri: str) -> None:
        """A client has unsubscribed: with the last one the server need not tell of it any more."""
        async with self._turn(uri):
            if uri not in self._watched or self._listening[uri] or await self._sessions.is_subscribed(uri):
                return
            self._watched.discard(uri)
            await self._ask(uri, "resources/unsubscribe")

    async def leave_all(self, session: McpSession) -> None:
        """A session is closed."""
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
