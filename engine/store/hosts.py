"""The table `hosts`: the machines that run tools, and which of them are alive.

Times are by the clock of the database, so that hosts with different clocks agree on which are alive.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import ColumnElement, RowMapping, Update, and_, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import database_time
from engine.store.database import Database, DatabaseAccess
from engine.store.rows.upserts import upsertion
from engine.store.tables import hosts, routes
from toolagent.contracts.hosts import Host
from toolagent_service.calls.dispatch import HostStanding

column = hosts.c

_SHOWN = timedelta(days=1)
"""How long a dead host is still shown; its row stays longer (`engine.store.departures`)."""

NOBODY = ""
"""The instance of a host that released its id. The row stays because its catalog does."""


@dataclass(frozen=True, slots=True)
class HostClaim:
    """A process that wants to be a host. `instance` identifies the process, `origin` its machine and state directory."""

    host: str
    instance: str
    origin: str
    buckets: dict[str, int]


@dataclass(frozen=True, slots=True)
class HostWork:
    """What a host reports with each heartbeat: running calls by bucket, and the mark of the drain that it has finished."""

    calls: Mapping[str, int] = field(default_factory=dict[str, int])
    drained_of: str | None = None


class HostTakenError(Exception):
    """Another living host, `holder`, has this id."""

    def __init__(self, holder: Host) -> None:
        super().__init__(f"The host id {holder.host!r} belongs to {holder.origin}.")
        self.holder = holder


_NO_WORK = HostWork()


class HostTable(DatabaseAccess):
    """A host without a heartbeat for `lease_s` seconds is dead. All methods raise StoreUnavailableError."""

    def __init__(self, database: Database, lease_s: float) -> None:
        super().__init__(database)
        self._is_alive = _heard_of_within(timedelta(seconds=lease_s))
        self._select = select(hosts, self._is_alive.label("is_alive"))

    async def claim(self, claim: HostClaim) -> str | None:
        """Become this host, if it is new, dead, or of the same origin: then it must be dead, because we hold its state directory.

        Returns the mark of its drain, if it drains: a drain outlives processes. Raises HostTakenError if the host is alive elsewhere.
        """
        row = {"host": claim.host, "instance": claim.instance, "origin": claim.origin, "buckets": json.dumps(claim.buckets)}
        row |= {"calls": "{}", "drained_of": None, "started_at": database_time(), "seen_at": database_time()}
        free = or_(column.origin == claim.origin, ~self._is_alive)
        async with self._database.write() as connection:
            statement = upsertion(connection, hosts, row, where=free).returning(column.draining_at)
            found = (await connection.execute(statement)).one_or_none()
            if found is None:
                raise HostTakenError(await self._holder(connection, claim.host))
            return found.draining_at

    async def beat(self, claim: HostClaim, work: HostWork = _NO_WORK) -> str | None:
        """Record a heartbeat with the work of the host. Returns the mark of its drain, as `claim` does.

        Raises HostTakenError if another instance has become this host.
        """
        said = {"calls": json.dumps(dict(work.calls)), "drained_of": work.drained_of, "seen_at": database_time()}
        async with self._database.write() as connection:
            beat = _of(claim).values(**said).returning(column.draining_at)
            if (seen := (await connection.execute(beat)).one_or_none()) is not None:
                return seen.draining_at
            taken = select(column.host).where(column.host == claim.host, column.instance != NOBODY)
            if (await connection.execute(taken)).one_or_none() is not None:
                raise HostTakenError(await self._holder(connection, claim.host))
        # The row was removed: no other process is this host.
        return await self.claim(claim)

    async def drain(self, host: str) -> bool:
        """Stop the host from taking calls, from its next heartbeat on, also after restarts. False if there is no such host.

        Idempotent: a running drain keeps its mark.
        """
        since = func.coalesce(column.draining_at, database_time())
        return bool(await self._database.change(update(hosts).filter_by(host=host).values(draining_at=since)))

    async def undrain(self, host: str) -> bool:
        """Let the host take calls again. False if there is no such host."""
        return bool(await self._database.change(update(hosts).filter_by(host=host).values(draining_at=None)))

    async def release(self, claim: HostClaim) -> None:
        """Stop being this host, unless another instance is. Its tools have ended, so their routes go too."""
        async with self._database.write() as connection:
            left = {"instance": NOBODY, "buckets": "{}", "calls": "{}", "seen_at": database_time()}
            if (await connection.execute(_of(claim).values(**left))).rowcount:
                await connection.execute(delete(routes).filter_by(host=claim.host))

    async def list_all(self) -> tuple[Host, ...]:
        """Hosts by id, with those that died within a day."""
        return tuple(map(_host, await self._database.mappings(self._select.where(_heard_of_within(_SHOWN)).order_by(column.host))))

    async def list_alive(self) -> dict[str, frozenset[str]]:
        """The buckets of each living host, by id."""
        rows = await self._database.rows(select(column.host, column.buckets).where(self._is_alive).order_by(column.host))
        return {host: frozenset(json.loads(buckets)) for host, buckets in rows}

    async def standings(self) -> dict[str, HostStanding]:
        """Buckets, calls and drain of each living host, by id."""
        query = select(column.host, column.buckets, column.calls, column.draining_at)
        rows = await self._database.rows(query.where(self._is_alive).order_by(column.host))
        return {
            host: HostStanding(json.loads(buckets), json.loads(calls), drains=since is not None) for host, buckets, calls, since in rows
        }

    async def find(self, host: str) -> tuple[Host, bool] | None:
        """A host, even one long dead, and whether its process has finished the current drain."""
        row = await self._database.mapping(self._select.where(column.host == host))
        return None if row is None else (_host(row), row["draining_at"] is not None and row["drained_of"] == row["draining_at"])

    async def _holder(self, connection: AsyncConnection, host: str) -> Host:
        return _host((await connection.execute(self._select.where(column.host == host))).mappings().one())


def _of(claim: HostClaim) -> Update:
    return update(hosts).filter_by(host=claim.host, instance=claim.instance)


def _heard_of_within(time: timedelta) -> ColumnElement[bool]:
    return and_(column.instance != NOBODY, column.seen_at >= database_time(-time))


def _host(row: RowMapping) -> Host:
    calls: object = json.loads(row["calls"]) if row["is_alive"] else {}
    return Host.model_validate({**row, "buckets": json.loads(row["buckets"]), "calls": calls, "draining_since": row["draining_at"]})
