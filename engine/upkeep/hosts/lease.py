"""The lease of a host: claims its id in the database, renews it, learns of drains, and releases it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import structlog

from engine.calling.intake import Intake
from engine.store.hosts import HostClaim, HostTable, HostTakenError, HostWork
from toolagent.contracts.hosts import Host
from toolagent.core.failures import StoreUnavailableError

_LOOK_S = 0.5
_SPARE_LOOKS = 4
_REMEDY = "give each its own TOOL_AGENT_HOST_ID, or unset that and give each a TOOL_AGENT_STATE_DIR that is no copy of another's."

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NotTheHostError(Exception):
    """This process is not, or no longer, the host. The message says why, and what to do."""


class HostLease:
    """Holds the id of the host until another process claims it."""

    def __init__(self, hosts: HostTable, claim: HostClaim, every_s: float, intake: Intake) -> None:
        self._hosts, self._claim, self._every_s, self._intake = hosts, claim, every_s, intake
        self._beats = asyncio.create_task(self._beat(), name=f"heartbeat of {claim.host}")

    async def lost(self) -> None:
        """Never returns. Raises NotTheHostError when another process has claimed the id."""
        await asyncio.shield(self._beats)

    async def end(self) -> None:
        """Stops the renewal, and releases the id."""
        self._beats.cancel()
        with suppress(asyncio.CancelledError, NotTheHostError):
            await self._beats
        with suppress(StoreUnavailableError):  # the database is away: the lease expires
            await self._hosts.release(self._claim)

    async def _beat(self) -> None:
        """While the database is away, tools keep running: no other process can claim the id either."""
        while True:
            await asyncio.sleep(self._every_s)
            try:
                work = HostWork(self._intake.calls, self._intake.drained_of)
                self._intake.heed(await self._hosts.beat(self._claim, work))
            except StoreUnavailableError as error:
                _log.warning("heartbeat_not_written", host=self._claim.host, reason=str(error))
            except HostTakenError as error:
                raise NotTheHostError(
                    f"This process is host {self._claim.host!r} no longer: another one has taken the id, {_described(error.holder)}. "
                    f"It was not heard of for too long (TOOL_AGENT_HOST_LEASE_S), or two processes have the same id: {_REMEDY}"
                ) from error


@asynccontextmanager
async def held_host(hosts: HostTable, claim: HostClaim, heartbeat_s: float, lease_s: float, intake: Intake) -> AsyncGenerator[HostLease]:
    """Holds the host until the block ends, and tells `intake` of drains. Raises NotTheHostError if the id is alive elsewhere."""
    try:
        mark = await _claim(hosts, claim, lease_s)
    except StoreUnavailableError as error:
        raise NotTheHostError(f"The host {claim.host!r} could not be noted in the database: {error}") from error
    intake.heed(mark)
    lease = HostLease(hosts, claim, heartbeat_s, intake)
    try:
        yield lease
    finally:
        await lease.end()


async def _claim(hosts: HostTable, claim: HostClaim, lease_s: float) -> str | None:
    """The mark of the drain. A host that moved to another machine may have to wait until its old lease expires."""
    looks = int(lease_s / _LOOK_S) + _SPARE_LOOKS
    for look in range(looks + 1):
        try:
            return await hosts.claim(claim)
        except HostTakenError as error:
            if look == looks:
                raise NotTheHostError(
                    f"There is a host {claim.host!r} already, and it is alive: {_described(error.holder)}. Stop it, or {_REMEDY}"
                ) from error
            if look == 0:
                _log.warning("host_id_is_taken", host=claim.host, by=error.holder.origin, waiting_s=lease_s)
            await asyncio.sleep(_LOOK_S)
    raise AssertionError("The last look returns or raises.")


def _described(holder: Host) -> str:
    return f"{holder.origin}, since {holder.started_at:%Y-%m-%d %H:%M:%S} UTC"
