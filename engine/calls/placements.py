"""Chooses the queue of a call: that of its bucket, or that of the host of its tool."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from engine.calls.endings import Refused
from engine.store.claims import Claim
from engine.store.hosts import HostTable
from engine.store.routes import RouteTable
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.dispatch import HostLoad, HostStanding, best_host, bucket_of, hosts_with_bucket, placement_of
from toolagent_service.contracts.steps import Placement

FRESH_S = 1.0
"""How long the list of living hosts is cached. The queue of a host that died meanwhile times out."""


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call that this process makes itself. Its claim is in the database once it `is_accepted`."""

    placement: Placement
    claim: Claim
    is_accepted: bool


class Placements:
    """Decides for `host`, which is alive and has these slots; None: for a process that runs no tools."""

    def __init__(
        self,
        host: str | None,
        buckets: Mapping[str, int],
        hosts: HostTable,
        routes: RouteTable,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host, self._own, self._hosts, self._routes, self._clock = host, HostStanding(buckets), hosts, routes, clock
        self._alive: Mapping[str, HostStanding] = {}
        self._fresh_until = float("-inf")

    async def choose(self, entry: ToolEntry, avoid: str | None = None, prefer: str | None = None) -> Placement:
        """`avoid` is a host that did not take the call in time: it may be dead, or busy.

        `prefer` holds state for the call, and takes it even while it drains. Raises Refused if all hosts drain, StoreUnavailableError.
        """
        placement = placement_of(entry, self._own.buckets, self._host or "")
        if placement.host is None:
            return await self._anywhere(entry, placement, prefer)
        alive = await self._alive_now(anew=avoid is not None)
        _require_one(alive, prefer)
        chosen = await self._best_of(alive, entry, avoid, prefer)
        # The queue is one that the chosen host serves: its buckets need not be ours.
        return placement if chosen is None else placement_of(entry, alive[chosen].buckets, chosen)

    async def _anywhere(self, entry: ToolEntry, placement: Placement, prefer: str | None) -> Placement:
        """Any host may take the call. If all drain, none reads their shared queue: a call of a session goes to the queue of its host."""
        with suppress(StoreUnavailableError):  # the host that takes the call decides
            alive = await self._alive_now(anew=False)
            _require_one(alive, prefer)
            if prefer is not None and prefer in alive and all(standing.drains for standing in alive.values()):
                return Placement(queue=f"{prefer}/{bucket_of(entry.manifest, alive[prefer].buckets)}", host=prefer)
        return placement

    async def host_for(self, entry: ToolEntry, avoid: str | None = None) -> str | None:
        """The host that should run the tool; None if none takes it. A single host needs no query for loads."""
        return await self._best_of(await self._alive_now(anew=avoid is not None), entry, avoid)

    async def _best_of(
        self, alive: Mapping[str, HostStanding], entry: ToolEntry, avoid: str | None, prefer: str | None = None
    ) -> str | None:
        accepting = {host: standing for host, standing in alive.items() if host == prefer or not standing.drains}
        candidates = hosts_with_bucket(entry.manifest, {host: standing.buckets for host, standing in accepting.items()})
        if len(candidates) <= 1:
            return next(iter(candidates), None)
        loads = {load.host: load for load in await self._routes.loads(entry.manifest.tool_id, entry.manifest.version)}
        shares = {host: accepting[host].share_of(bucket_of(entry.manifest, accepting[host].buckets)) for host in candidates}
        known = [replace(loads.get(host, HostLoad(host)), share=share) for host, share in shares.items()]
        return best_host(candidates, known, self._host, avoid, prefer)

    async def _alive_now(self, *, anew: bool) -> Mapping[str, HostStanding]:
        if anew or self._clock() >= self._fresh_until:
            # This host is alive, whatever the table says.
            own = {} if self._host is None else {self._host: self._own}
            self._alive = {**own, **await self._hosts.standings()}
            self._fresh_until = self._clock() + FRESH_S
        return self._alive


def _require_one(alive: Mapping[str, HostStanding], prefer: str | None) -> None:
    """Raises Refused if every host drains, and none is the preferred one."""
    if not alive or prefer in alive or not all(standing.drains for standing in alive.values()):
        return
    draining = sorted(alive)
    message = (
        f"Every host drains and takes no new calls ({', '.join(draining)}). Start another host, or end a drain: "
        f"`toolagent hosts drain {draining[0]} --undo`."
    )
    raise Refused(ErrorType.UNAVAILABLE, message, {"sent": False, "draining": [*draining]})
