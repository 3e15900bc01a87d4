"""Where a call waits: the queue of its bucket, or that of the host its tool lives on."""

import time
from collections.abc import Callable, Collection, Mapping

from engine.store.hosts import HostTable
from engine.store.routes import RouteTable
from toolagent.contracts.catalog import ToolEntry
from toolagent_service.calls.dispatch import best_host, hosts_with_bucket, placement_of
from toolagent_service.contracts.steps import Placement

_FRESH_S = 1.0
"""How long the list of live hosts may be cached: the queue of a host that died meanwhile times out."""


class Placements:
    """Decides on behalf of `host`, which is alive; without one, on behalf of a process that runs no tools."""

    def __init__(
        self,
        host: str | None,
        buckets: Collection[str],
        hosts: HostTable,
        routes: RouteTable,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host, self._buckets, self._hosts, self._routes, self._clock = host, frozenset(buckets), hosts, routes, clock
        self._alive: Mapping[str, Collection[str]] = {}
        self._fresh_until = float("-inf")

    async def choose(self, entry: ToolEntry, avoid: str | None = None, prefer: str | None = None) -> Placement:
        """`avoid` is a host that did not take the call in time; it may be dead, or only busy. Raises StoreUnavailableError.

        `prefer` has what the call works with.
        """
        placement = placement_of(entry, self._buckets, self._host or "")
        if placement.host is None:
            return placement
        alive = await self._alive_now(anew=avoid is not None)
        chosen = await self._best_of(alive, entry, avoid, prefer)
        # The queue is one that the chosen host serves: its buckets need not be ours.
        return placement if chosen is None else placement_of(entry, alive[chosen], chosen)

    async def host_for(self, entry: ToolEntry, avoid: str | None = None) -> str | None:
        """The host that should run the tool; None when none is alive. With a single host no query is made."""
        return await self._best_of(await self._alive_now(anew=avoid is not None), entry, avoid)

    async def _best_of(
        self, alive: Mapping[str, Collection[str]], entry: ToolEntry, avoid: str | None, prefer: str | None = None
    ) -> str | None:
        candidates = hosts_with_bucket(entry.manifest, alive)
        if len(candidates) <= 1:
            return next(iter(candidates), None)
        loads = await self._routes.loads(entry.manifest.tool_id, entry.manifest.version)
        return best_host(candidates, loads, self._host, avoid, prefer)

    async def _alive_now(self, *, anew: bool) -> Mapping[str, Collection[str]]:
        if anew or self._clock() >= self._fresh_until:
            # This host is alive, whatever the table says.
            own = {} if self._host is None else {self._host: self._buckets}
            self._alive = {**await self._hosts.list_alive(), **own}
            self._fresh_until = self._clock() + _FRESH_S
        return self._alive
