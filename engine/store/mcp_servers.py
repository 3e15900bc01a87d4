"""The table `mcp_servers`, with the state of logins, and the tools of each server with their pinned definitions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import RowMapping, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_files import CATALOG
from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess
from engine.store.file_references import hold_files, named_files, release_files
from engine.store.groups import write_group
from engine.store.mcp_tables import mcp_logins, mcp_servers
from engine.store.pinned_tools import Written, mark_gone, of_server, write_pinned
from engine.store.rows.upserts import insert_new
from engine.store.tables import groups, tools
from engine.store.tools import erase_tools
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.mcp_servers import McpServer, McpServerSpec
from toolagent.contracts.sources import McpSource

_AT_ONCE = 100
"""Tools per transaction: SQLite has one writer, and calls wait for it."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions that a server listed, by tool id. `others` are ids of listed entries that are no usable tools: earlier versions stay.

    Without `is_whole` the list may be incomplete: then no tool counts as gone.
    """

    source: McpSource
    by_id: Mapping[str, str]
    entry_of: Callable[[str, str], ToolEntry | None] = field(repr=False)
    """Makes the entry of a tool id and a definition."""
    others: frozenset[str] = frozenset()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class BroughtIn:
    """`refused` are names that are taken. `before` are removed or changed servers as they were before."""

    refused: tuple[str, ...] = ()
    before: tuple[McpServer, ...] = ()


class McpServerRows(DatabaseAccess):
    """All raise StoreUnavailableError."""

    async def get(self, name: str) -> McpServer | None:
        found = await self._database.mapping(_SERVERS.where(mcp_servers.c.name == name))
        return _server(found) if found is not None else None

    async def source(self, name: str) -> McpSource | None:
        """The source that is started or asked; None before the first success."""
        return await self._database.document(McpSource, select(mcp_servers.c.source).filter_by(name=name))

    async def list_all(self) -> tuple[McpServer, ...]:
        """By name."""
        return tuple(map(_server, await self._database.mappings(_SERVERS.order_by(mcp_servers.c.name))))

    async def names(self) -> Sequence[str]:
        return await self._database.scalars(select(mcp_servers.c.name))

    async def is_taken(self, name: str) -> bool:
        """Whether a server or a group has this name."""
        found = (select(mcp_servers.c.name).filter_by(name=name), select(groups.c.group_id).filter_by(group_id=name))
        return any([await self._database.scalar(query) is not None for query in found])

    async def add(self, server: McpServer, found: Definitions) -> tuple[McpServer, frozenset[str]] | None:
        """Add a server with its tools. Returns it with the ids that other tools have; None if the name is taken."""
        # If the process dies before the tools are written, the server is due at once, like one that was never asked.
        if not await self.add_unlisted(server.model_copy(update={"attempted_at": None, "refreshed_at": None})):
            return None
        return await self.renew(server, found)

    async def add_unlisted(self, server: McpServer) -> bool:
        """Add a server whose tools are unknown. False if the name is taken."""
        async with self._database.write(alone=CATALOG) as connection:
            for query in (select(mcp_servers.c.name).filter_by(name=server.name), _group(server.name)):
                if await connection.scalar(query) is not None:
                    return False
            # Remove the marks of tools of an earlier server of this name.
            await erase_tools(connection, (await connection.scalars(select(tools.c.tool_id).where(of_server(server.name)))).all())
            await insert_new(connection, mcp_servers, [_row(server)])
            return True

    async def renew(self, server: McpServer, found: Definitions) -> tuple[McpServer, frozenset[str]] | None:
        """Write the listed tools, then the server. Returns as `add`; None if it is another registration meanwhile.

        Adding a server approves the tools that it lists first. Later ones wait for approval, unless the server is trusted.
        """
        written = Written()
        ids = [*found.by_id]
        for at in range(0, max(len(ids), 1), _AT_ONCE):
            async with self._database.write(alone=CATALOG) as connection:
                if (kept := await _kept(connection, server)) is None:
                    return None
                some = {tool_id: found.by_id[tool_id] for tool_id in ids[at : at + _AT_ONCE]}
                new_wait = kept.refreshed_at is not None and not kept.spec.trusted
                written.add(await write_pinned(connection, server.name, some, found.entry_of, new_wait=new_wait))
        async with self._database.write(alone=CATALOG) as connection:
            if await _kept(connection, server) is None:
                return None
            listed = {*found.by_id, *found.others}
            gone = await mark_gone(connection, server.name, listed) if found.is_whole else tuple[str, ...]()
            there = (await connection.scalars(select(tools.c.tool_id).where(of_server(server.name), tools.c.removed_at.is_(None)))).all()
            changes = {"tool_ids": tuple(sorted({*there} - {*gone})), "waiting": tuple(written.waiting), "gone": tuple(sorted(gone))}
            server = server.model_copy(update={**changes, "login_required": False})
            await connection.execute(update(mcp_logins).filter_by(name=server.name).values(required_at=None))
            await _save(connection, server, found.source)
            await write_group(connection, _group_of(server))
        return server, frozenset(written.taken)

    async def note(self, server: McpServer, **changes: object) -> bool:
        """Change fields of a server and keep the others as they are now. False if it is another registration."""
        return await self._note(server, changes, None)

    async def note_failure(self, server: McpServer, began: datetime, error: str) -> bool:
        """Record a failed look, unless a later one succeeded. False if it is another registration."""
        return await self._note(server, {"attempted_at": began, "error": error}, began)

    async def _note(self, server: McpServer, changes: Mapping[str, object], began: datetime | None) -> bool:
        async with self._database.write(alone=CATALOG) as connection:
            if (kept := await _kept(connection, server)) is None:
                return False
            if began is None or kept.refreshed_at is None or kept.refreshed_at <= began:
                changed = _row(kept.model_copy(update=changes))
                await connection.execute(update(mcp_servers).filter_by(name=server.name).values(**changed))
            return True

    async def bring_in(self, specs: Mapping[str, McpServerSpec], gone: Sequence[str]) -> BroughtIn:
        """Import the servers of a file. New and changed ones are due at once."""
        refused: list[str] = []
        before: list[McpServer] = []
        async with self._database.write(alone=CATALOG) as connection:
            texts = (await connection.scalars(select(mcp_servers.c.document))).all()
            known = {server.name: server for server in map(McpServer.model_validate_json, texts)}
            for name in gone:
                if name in known and known[name].from_file:
                    await _remove(connection, name)
                    before.append(known[name])
            for name, spec in specs.items():
                there = known.get(name)
                if await connection.scalar(_group(name)) is not None if there is None else not there.from_file:
                    refused.append(name)
                elif there is None:
                    server = McpServer(name=name, spec=spec, from_file=True, registered_at=now())
                    await insert_new(connection, mcp_servers, [_row(server)])
                elif there.spec != spec:
                    before.append(there)
                    changes = {"spec": spec, "attempted_at": None, "registered_at": now()}
                    await _save(connection, there.model_copy(update=changes), None)
        return BroughtIn(tuple(refused), tuple(before))

    async def remove(self, name: str) -> int | None:
        """Remove the server with its tools. Returns the number of tools, None if there is no such server."""
        async with self._database.write(alone=CATALOG) as connection:
            return await _remove(connection, name)


_OF_LOGINS = (mcp_logins.c.url, mcp_logins.c.required_at, mcp_logins.c.login_url, mcp_logins.c.login_until)
_SERVERS = select(mcp_servers.c.document, *_OF_LOGINS).join_from(
    mcp_servers, mcp_logins, mcp_logins.c.name == mcp_servers.c.name, isouter=True
)


def _server(row: RowMapping) -> McpServer:
    server = McpServer.model_validate_json(row["document"])
    if row["url"] is None or row["url"] != server.spec.url:
        return server
    login: dict[str, object] = {"login_required": row["required_at"] is not None}
    if row["login_until"] is not None and row["login_until"] > timestamp():
        login |= {"login_url": row["login_url"], "login_until": datetime.fromisoformat(row["login_until"])}
    return server.model_copy(update=login)


def _group(name: str):
    return select(groups.c.group_id).filter_by(group_id=name)


def _row(server: McpServer) -> dict[str, object]:
    return {"name": server.name, "document": server.model_dump_json(exclude={"login_required", "login_url", "login_until"})}


def _group_of(server: McpServer) -> ToolGroup:
    where = server.spec.url or " ".join((server.spec.command or "", *server.spec.args))
    description = f"The tools of the MCP server {server.name} ({where.partition('?')[0][:200]})."
    return ToolGroup(group_id=server.name, name=server.name, description=description, tool_ids=server.tool_ids)


def _holder(name: str) -> str:
    return f"server:{name}"


async def _save(connection: AsyncConnection, server: McpServer, source: McpSource | None) -> None:
    text = source.model_dump_json() if source is not None else None
    await connection.execute(update(mcp_servers).filter_by(name=server.name).values(**_row(server), source=text))
    await release_files(connection, _holder(server.name))
    await hold_files(connection, _holder(server.name), named_files(text))


async def _remove(connection: AsyncConnection, name: str) -> int | None:
    removed = await connection.execute(delete(mcp_servers).filter_by(name=name))
    if not removed.rowcount:
        return None
    await connection.execute(delete(mcp_logins).filter_by(name=name))
    await release_files(connection, _holder(name))
    await connection.execute(delete(groups).filter_by(group_id=name))
    found = (await connection.execute(select(tools.c.tool_id, tools.c.removed_at).where(of_server(name)))).all()
    await erase_tools(connection, [tool_id for tool_id, _ in found])
    return sum(removed_at is None for _, removed_at in found)


async def _kept(connection: AsyncConnection, server: McpServer) -> McpServer | None:
    """The stored server; None if it is another registration."""
    text = await connection.scalar(select(mcp_servers.c.document).filter_by(name=server.name))
    kept = McpServer.model_validate_json(text) if text is not None else None
    return kept if kept is not None and kept.registered_at == server.registered_at else None
