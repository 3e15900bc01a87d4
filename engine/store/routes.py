"""The table `routes`: the running state of tools, by host."""

from sqlalchemy import delete, select

from engine.store.clock import now, timestamp
from engine.store.database import Database
from engine.store.tables import routes
from engine.store.upserts import upsert
from toolagent.contracts.routes import RunState, ToolRoute

__all__ = ["RouteTable"]


class RouteTable:
    """What each host last said of the tools on it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, route: ToolRoute, version: str) -> None:
        row = {
            "tool_id": route.tool_id,
            "host": route.host or "",
            "version": version,
            "state": route.state.value,
            "route": route.model_dump_json(),
            "updated_at": timestamp(now()),
        }
        async with self._database.write() as connection:
            await upsert(connection, routes, row)

    async def list_all(self) -> tuple[ToolRoute, ...]:
        """By tool; where several hosts have one, the one that was heard of last comes last."""
        async with self._database.read() as connection:
            texts = (await connection.execute(select(routes.c.route).order_by(routes.c.tool_id, routes.c.updated_at))).scalars().all()
        return tuple(map(ToolRoute.model_validate_json, texts))

    async def get(self, tool_id: str) -> ToolRoute | None:
        """The route of a tool, a running one before others."""
        found = [route for route in await self.list_all() if route.tool_id == tool_id]
        return max(reversed(found), key=lambda route: route.state is RunState.RUNNING, default=None)

    async def reset(self, host: str) -> None:
        """Forget the routes of a host that starts: its processes ended with its last worker."""
        async with self._database.write() as connection:
            await connection.execute(delete(routes).where(routes.c.host == host))

    async def remove(self, tool_id: str) -> int:
        async with self._database.write() as connection:
            return (await connection.execute(delete(routes).where(routes.c.tool_id == tool_id))).rowcount
