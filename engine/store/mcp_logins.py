"""The table `mcp_logins`: sealed tokens of MCP servers, and for each server one pending login."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Update, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess
from engine.store.mcp_tables import mcp_logins, mcp_servers
from toolagent.contracts.mcp_servers import McpServer

column = mcp_logins.c

_IS_STRAY = column.name.not_in(select(mcp_servers.c.name))
_PENDING = dict.fromkeys(("state", "login_url", "login_until", "visit"))
_SETTLED = dict.fromkeys(("required_at", "scope", "leased_until"))


@dataclass(frozen=True, slots=True)
class McpLoginRow:
    """`url` is the server's: tokens are sent to no other URL. `number` grows with each change of `sealed`.

    `scope`: further scopes that the server asked for.
    """

    name: str
    url: str
    number: int = 0
    sealed: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A login that waits for its browser. `visit` is sealed."""

    name: str
    url: str
    state: str
    login_url: str
    until: datetime
    visit: str


class McpLoginRows(DatabaseAccess):
    """All raise StoreUnavailableError."""

    async def get(self, name: str, url: str) -> McpLoginRow | None:
        """The row of a server; None if it is at another URL."""
        found = await self._database.rows(select(column.number, column.sealed, column.scope).filter_by(name=name, url=url))
        return next((McpLoginRow(name, url, number, sealed, scope) for number, sealed, scope in found), None)

    async def require(self, name: str, url: str, scope: str | None = None, number: int | None = None) -> None:
        """Note that a person has to log in at a registered server. With `number`, only if nothing was renewed since."""
        async with self._database.write(alone=_alone(name)) as connection:
            there = await _number(connection, name, url)
            if not await _is_registered(connection, name, url) or (number is not None and (there or 0) != number):
                return
            asked = {"scope": scope} if scope else {}
            await _put(connection, name, url, {"required_at": timestamp(), "leased_until": None, **asked})

    async def begin(self, login: PendingLogin) -> bool:
        """Record a pending login, in place of an earlier one. False if the server is not registered any more."""
        async with self._database.write(alone=_alone(login.name)) as connection:
            if not await _is_registered(connection, login.name, login.url):
                return False
            pending = {"state": login.state, "login_url": login.login_url, "login_until": timestamp(login.until), "visit": login.visit}
            is_first = await _number(connection, login.name, login.url) is None
            await _put(connection, login.name, login.url, {**pending, **({"required_at": timestamp()} if is_first else {})})
            return True

    async def take(self, state: str) -> PendingLogin | None:
        """Remove and return the pending login of this state."""
        mine = column.state == state
        # Anybody may ask with any state: an unknown one must not delay writers.
        if await self._database.scalar(select(column.name).where(mine)) is None:
            return None
        async with self._database.write() as connection:
            query = select(mcp_logins).where(mine).with_for_update()
            row = (await connection.execute(query)).mappings().one_or_none()
            if row is None:
                return None
            await connection.execute(update(mcp_logins).where(mine).values(**_PENDING))
            until = datetime.fromisoformat(row["login_until"])
            return PendingLogin(row["name"], row["url"], state, row["login_url"], until, row["visit"])

    async def keep(self, name: str, url: str, sealed: str, *, is_new: bool = False) -> bool:
        """Store the result of a login. False if the server is not registered any more. With `is_new` it need not be registered yet."""
        async with self._database.write(alone=_alone(name)) as connection:
            if not is_new and not await _is_registered(connection, name, url):
                return False
            number = (await _number(connection, name, url) or 0) + 1
            await _put(connection, name, url, {"number": number, "sealed": sealed, **_SETTLED})
            return True

    async def lease(self, row: McpLoginRow, for_s: float) -> bool:
        """Whether the caller may renew it during the next `for_s` seconds."""
        free = or_(column.leased_until.is_(None), column.leased_until < timestamp())
        until = timestamp(now() + timedelta(seconds=for_s))
        return await self._changed(_update(row).where(free).values(leased_until=until))

    async def give_back(self, row: McpLoginRow) -> None:
        """Release the lease: the renewal failed."""
        await self._changed(_update(row).values(leased_until=None))

    async def drop(self, row: McpLoginRow) -> None:
        """Remove the tokens: the authorization server does not renew them, so a person has to log in."""
        gone = {"number": row.number + 1, "sealed": None, "leased_until": None, "required_at": timestamp()}
        await self._changed(_update(row).values(**gone))

    async def renew(self, row: McpLoginRow, sealed: str) -> bool:
        """Store renewed tokens. False if other ones were stored meanwhile."""
        values = {"number": row.number + 1, "sealed": sealed, "leased_until": None, "required_at": None}
        return await self._changed(_update(row).values(**values))

    async def forget_unregistered(self, name: str) -> None:
        """Remove what was stored for a server that was not registered in the end."""
        await self._database.change(delete(mcp_logins).filter_by(name=name).where(_IS_STRAY))

    async def unregistered(self) -> frozenset[str]:
        """Names of unregistered servers that have stored logins."""
        return frozenset(await self._database.scalars(select(column.name).where(_IS_STRAY)))

    async def _changed(self, statement: Update) -> bool:
        return bool(await self._database.change(statement))


def _alone(name: str) -> str:
    return f"mcp_login:{name}"


def _update(row: McpLoginRow) -> Update:
    return update(mcp_logins).filter_by(name=row.name, url=row.url, number=row.number)


async def _put(connection: AsyncConnection, name: str, url: str, values: Mapping[str, object]) -> None:
    """Change the row. For another URL, start a new one."""
    if await _number(connection, name, url) is None:
        await connection.execute(delete(mcp_logins).filter_by(name=name))
        await connection.execute(insert(mcp_logins).values(name=name, url=url, number=0))
    await connection.execute(update(mcp_logins).filter_by(name=name).values(**values))


async def _number(connection: AsyncConnection, name: str, url: str) -> int | None:
    return await connection.scalar(select(column.number).filter_by(name=name, url=url))


async def _is_registered(connection: AsyncConnection, name: str, url: str) -> bool:
    text = await connection.scalar(select(mcp_servers.c.document).filter_by(name=name))
    return text is not None and McpServer.model_validate_json(text).spec.url == url
