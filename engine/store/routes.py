"""The table `routes`: the running state of tools, by host."""

from datetime import timedelta

from sqlalchemy import JSON, ColumnElement, String, and_, case, cast, delete, distinct, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import database_time
from engine.store.database import Database
from engine.store.rows.upserts import upsertion
from engine.store.tables import hosts, routes
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent_service.calls.dispatch import HostLoad

column = routes.c

_UP = (RunState.RUNNING, RunState.STARTING)


class RouteTable:
    """The last report of each host about its tools. A host without a heartbeat for `lease_s` seconds runs none."""

    def __init__(self, database: Database, lease_s: float = 10.0) -> None:
        self._database = database
        self._lease = timedelta(seconds=lease_s)

    async def save(self, route: ToolRoute, version: str) -> None:
        row = {
            "tool_id": route.tool_id,
            "host": route.host or "",
            "version": version,
            "state": route.state.value,
            "route": route.model_dump_json(),
            "updated_at": database_time(),
        }
        async with self._database.write_once() as connection:
            await connection.execute(upsertion(connection, routes, row))

    async def list_all(self) -> tuple[ToolRoute, ...]:
        """All routes by tool; the latest report of a tool comes last."""
        return await self._list()

    async def get(self, tool_id: str) -> ToolRoute | None:
        """The route of a tool, preferably a running one."""
        found = await self._list(column.tool_id == tool_id)
        return max(reversed(found), key=lambda route: route.state is RunState.RUNNING, default=None)

    async def loads(self, tool_id: str, version: str) -> tuple[HostLoad, ...]:
        """For each host with running tools: how many, and whether this version of this tool is among them.

        Tools that share a process count as one.
        """
        here = case((and_(column.tool_id == tool_id, column.version == version), 1), else_=0)
        async with self._database.read() as connection:
            processes = func.count(distinct(func.coalesce(_pid(connection), column.tool_id)))
            loads = select(column.host, processes.label("tools"), func.max(here).label("has_it"))
            rows = (await connection.execute(loads.where(column.state.in_(_UP)).group_by(column.host))).mappings().all()
        return tuple(HostLoad(host=row["host"], tools=row["tools"], has_it=bool(row["has_it"])) for row in rows)

    async def up_by_host(self) -> dict[str, int]:
        """Number of running tools by host."""
        query = select(column.host, func.count()).where(column.state.in_(_UP)).group_by(column.host)
        return {host: number for host, number in await self._database.rows(query)}

    async def up_elsewhere(self, host: str) -> frozenset[str]:
        """Tools that run on other hosts that are alive and do not drain."""
        others = select(column.tool_id).outerjoin(hosts, hosts.c.host == column.host).where(column.host != host)
        return frozenset(await self._database.scalars(others.where(column.state.in_(_UP), ~self._is_dead(), hosts.c.draining_at.is_(None))))

    async def reset(self, host: str) -> None:
        """Remove the routes of a host that starts: its processes ended with its last worker."""
        await self._database.change(delete(routes).filter_by(host=host))

    async def forget(self, tool_id: str, host: str) -> None:
        """Remove the route of a tool that left this host."""
        await self._database.change(delete(routes).filter_by(tool_id=tool_id, host=host))

    async def remove(self, tool_id: str) -> int:
        return await self._database.change(delete(routes).filter_by(tool_id=tool_id))

    async def _list(self, *conditions: ColumnElement[bool]) -> tuple[ToolRoute, ...]:
        query = select(column.route, self._is_dead()).outerjoin(hosts, hosts.c.host == column.host).where(*conditions)
        rows = await self._database.rows(query.order_by(column.tool_id, column.updated_at))
        return tuple(_route(text, is_dead=is_dead) for text, is_dead in rows)

    def _is_dead(self) -> ColumnElement[bool]:
        """Whether the host has died. A host without a row released its id instead."""
        return func.coalesce(hosts.c.seen_at < database_time(-self._lease), False)


def _pid(connection: AsyncConnection) -> ColumnElement[str | None]:
    """The process id of the tool on its host, as text."""
    if connection.dialect.name == "sqlite":
        return cast(func.json_extract(column.route, "$.pid"), String)
    return cast(column.route, JSON)["pid"].as_string()


def _route(text: str, *, is_dead: bool) -> ToolRoute:
    route = ToolRoute.model_validate_json(text)
    if not is_dead or route.state not in _UP:
        return route
    ended = {"state": RunState.STOPPED, "endpoint": None, "pid": None, "port": None, "started_at": None}
    return route.model_copy(update={**ended, "last_error": f"Its host {route.host!r} does not answer any more."})
