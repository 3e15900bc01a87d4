"""The table `hosts`: which machines run tools, and which of them are alive.

All times are the database's own, so that hosts whose clocks differ agree on who is alive.
"""

import json
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, RowMapping, String, and_, delete, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database
from engine.store.tables import hosts, routes
from engine.store.upserts import insert_for
from toolagent.contracts.hosts import Host

_SHOWN = timedelta(days=1)
"""How long a dead host is still shown; its row stays longer (`engine.store.departures`)."""

NOBODY = ""
"""The instance of a host that gave its id back: the row stays, since its catalog does."""


@dataclass(frozen=True, slots=True)
class HostClaim:
    """Who wants to be a host: `instance` is this life of the process, `origin` the machine and state directory it lives on."""

    host: str
    instance: str
    origin: str
    buckets: dict[str, int]


class HostTakenError(Exception):
    """Another host has this id and is alive, or has taken it over; `holder` is what is known of it."""

    def __init__(self, holder: Host) -> None:
        super().__init__(f"The host id {holder.host!r} belongs to {holder.origin}.")
        self.holder = holder


class HostTable:
    """A host that was not heard of for `lease_s` seconds is dead. All methods raise StoreUnavailableError."""

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database = database
        self._lease = timedelta(seconds=lease_s)

    async def claim(self, claim: HostClaim) -> None:
        """Become that host: one that is new, dead, or lived in the same place and must be dead, since we hold its state directory.

        Raises HostTakenError when it is alive elsewhere.
        """
        row = {"host": claim.host, "instance": claim.instance, "origin": claim.origin, "buckets": json.dumps(claim.buckets)}
        async with self._database.write() as connection:
            now, dead = database_time(connection), database_time(connection, -self._lease)
            insert = insert_for(connection, hosts).values(**row, started_at=now, seen_at=now)
            changed = {name: insert.excluded[name] for name in ("instance", "origin", "buckets", "started_at", "seen_at")}
            free = or_(hosts.c.origin == claim.origin, hosts.c.seen_at < dead, hosts.c.instance == NOBODY)
            statement = insert.on_conflict_do_update(index_elements=["host"], set_=changed, where=free).returning(hosts.c.host)
            if (await connection.execute(statement)).one_or_none() is None:
                raise HostTakenError(await self._holder(connection, claim.host))

    async def beat(self, claim: HostClaim) -> None:
        """Say that it is alive. Raises HostTakenError when another instance has become this host."""
        mine = and_(hosts.c.host == claim.host, hosts.c.instance == claim.instance)
        async with self._database.write() as connection:
            if (await connection.execute(update(hosts).where(mine).values(seen_at=database_time(connection)))).rowcount:
                return
            taken = select(hosts.c.host).where(hosts.c.host == claim.host, hosts.c.instance != NOBODY)
            if (await connection.execute(taken)).one_or_none() is not None:
                raise HostTakenError(await self._holder(connection, claim.host))
        # Somebody removed the row: nobody else is this host, so it is ours.
        await self.claim(claim)

    async def release(self, claim: HostClaim) -> None:
        """Be a host no longer; nothing when another instance is. Its tools have ended, so their routes go too."""
        mine = and_(hosts.c.host == claim.host, hosts.c.instance == claim.instance)
        async with self._database.write() as connection:
            left = {"instance": NOBODY, "buckets": "{}", "seen_at": database_time(connection)}
            if (await connection.execute(update(hosts).where(mine).values(**left))).rowcount:
                await connection.execute(delete(routes).where(routes.c.host == claim.host))

    async def list_all(self) -> tuple[Host, ...]:
        """By id; the dead ones too, for a day."""
        async with self._database.read() as connection:
            shown = and_(hosts.c.instance != NOBODY, hosts.c.seen_at >= database_time(connection, -_SHOWN))
            rows = (await connection.execute(self._select(connection).where(shown).order_by(hosts.c.host))).mappings().all()
        return tuple(map(_host, rows))

    async def list_alive(self) -> dict[str, frozenset[str]]:
        """The buckets that each host serves which is alive, by its id."""
        async with self._database.read() as connection:
            alive = and_(hosts.c.instance != NOBODY, hosts.c.seen_at >= database_time(connection, -self._lease))
            rows = (await connection.execute(select(hosts.c.host, hosts.c.buckets).where(alive).order_by(hosts.c.host))).all()
        return {host: frozenset(json.loads(buckets)) for host, buckets in rows}

    def _select(self, connection: AsyncConnection):
        alive = hosts.c.seen_at >= database_time(connection, -self._lease)
        return select(hosts, alive.label("is_alive"))

    async def _holder(self, connection: AsyncConnection, host: str) -> Host:
        return _host((await connection.execute(self._select(connection).where(hosts.c.host == host))).mappings().one())


def database_time(connection: AsyncConnection, shift: timedelta = timedelta()) -> ColumnElement[str]:
    """The time by the clock of the database, as `engine.store.clock.timestamp` writes it (SQLite knows milliseconds only)."""
    seconds = shift.total_seconds()
    if connection.dialect.name == "postgresql":
        moment = func.timezone("UTC", func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, seconds))
        return func.to_char(moment, 'YYYY-MM-DD"T"HH24:MI:SS.US', type_=String) + literal("+00:00")
    return func.strftime("%Y-%m-%dT%H:%M:%f", "now", f"{seconds:+.3f} seconds", type_=String) + literal("000+00:00")


def _host(row: RowMapping) -> Host:
    return Host.model_validate({**row, "buckets": json.loads(row["buckets"])})
