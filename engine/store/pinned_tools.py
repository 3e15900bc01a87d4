"""Tools whose definitions are pinned: those of MCP servers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_entries import MCP_ORIGIN
from engine.store.rows.upserts import insert_new
from engine.store.rows.version_rows import NewVersion, put_versions, tool_event, write_versions
from engine.store.tables import events, tool_versions, tools
from engine.store.tool_files import forget_version
from engine.store.tools import collected, erase_tools, stored_versions
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.mcp_servers import WaitingVersion
from toolagent.contracts.records import EventType
from toolagent.core.catalog.pins import Pinned, appeared, gone, pinned

EntryOf = Callable[[str, str], ToolEntry | None]
"""Makes the entry of a tool id and a definition."""


@dataclass(slots=True)
class Written:
    """`waiting` are versions that wait for approval. `taken` are ids that other tools have; those stay unchanged."""

    waiting: list[WaitingVersion] = field(default_factory=list[WaitingVersion])
    taken: set[str] = field(default_factory=set[str])

    def add(self, other: "Written") -> None:
        self.waiting += other.waiting
        self.taken |= other.taken


@dataclass(frozen=True, slots=True)
class _Tool:
    active: str
    versions: Mapping[str, Pinned]

    @property
    def was_active(self) -> bool:
        return any(version.was_active for version in self.versions.values())


def of_server(name: str) -> ColumnElement[bool]:
    return tools.c.origin == f"{MCP_ORIGIN}{name}"


async def write_pinned(
    connection: AsyncConnection, server: str, definitions: Mapping[str, str], entry_of: EntryOf, *, new_wait: bool
) -> Written:
    """Write changed definitions as versions that wait for approval. With `new_wait`, new tools wait too.

    Removed tools stay removed.
    """
    written = Written()
    columns = select(tools.c.tool_id, tools.c.origin, tools.c.removed_at).where(tools.c.tool_id.in_([*definitions]))
    rows = {tool_id: (origin, removed) for tool_id, origin, removed in (await connection.execute(columns)).all()}
    ours = f"{MCP_ORIGIN}{server}"
    written.taken = {tool_id for tool_id, (origin, removed) in rows.items() if origin != ours and removed is None}
    left = {tool_id for tool_id, (origin, removed) in rows.items() if origin == ours and removed is not None}
    known = await _known(connection, [tool_id for tool_id in definitions if tool_id not in written.taken | left])
    new: list[Pinned] = []
    for tool_id, definition in definitions.items():
        if tool_id in written.taken or tool_id in left:
            continue
        if (tool := known.get(tool_id)) is None:
            if (entry := entry_of(tool_id, definition)) is not None:
                new.append(appeared(entry, definition, waits=new_wait))
            continue
        change = pinned(definition, tool.versions, tool.active, lambda text, tool_id=tool_id: entry_of(tool_id, text))
        for version in change.drop:
            await forget_version(connection, tool_id, version, None)
        await _write(connection, change.write)
        if change.waiting is not None:
            written.waiting.append(WaitingVersion(tool_id=tool_id, version=change.waiting, is_new=not tool.was_active))
    waiting = {one.entry.manifest.tool_id: one.entry.manifest.version for one in new if not one.was_active}
    await put_versions(connection, [NewVersion(one.entry, one.definition) for one in new], ours, waiting=waiting)
    written.waiting += [WaitingVersion(tool_id=tool_id, version=version, is_new=True) for tool_id, version in waiting.items()]
    return written


async def mark_gone(connection: AsyncConnection, server: str, listed: Collection[str]) -> tuple[str, ...]:
    """Mark tools that are no longer listed, and return their ids. Erase those that were never active: new names must not fill the table."""
    there = (await connection.scalars(select(tools.c.tool_id).where(of_server(server), tools.c.removed_at.is_(None)))).all()
    away = await _known(connection, [tool_id for tool_id in there if tool_id not in listed])
    await erase_tools(connection, [tool_id for tool_id, tool in away.items() if not tool.was_active])
    left = {tool_id: tool for tool_id, tool in away.items() if tool.was_active}
    await _write(connection, [one for tool in left.values() if (one := gone(tool.versions[tool.active])) is not None])
    return tuple(left)


async def _known(connection: AsyncConnection, tool_ids: Sequence[str]) -> dict[str, _Tool]:
    entries = collected((await connection.execute(stored_versions().where(tools.c.tool_id.in_(tool_ids)))).all())
    columns = (tool_versions.c.tool_id, tool_versions.c.version, tool_versions.c.raw, tool_versions.c.activated_at, tools.c.active_version)
    query = select(*columns).join(tools, tools.c.tool_id == tool_versions.c.tool_id).where(tools.c.tool_id.in_(tool_ids))
    told = {(tool_id, version): rest for tool_id, version, *rest in (await connection.execute(query)).all()}
    found: dict[str, _Tool] = {}
    versions: dict[str, dict[str, Pinned]] = {}
    for entry in entries:
        tool_id, version = entry.manifest.tool_id, entry.manifest.version
        raw, activated_at, active = told[tool_id, version]
        versions.setdefault(tool_id, {})[version] = Pinned(entry, raw or "", activated_at is not None)
        found[tool_id] = _Tool(active, versions[tool_id])
    return found


async def _write(connection: AsyncConnection, changed: Sequence[Pinned]) -> None:
    await write_versions(connection, [NewVersion(one.entry, one.definition) for one in changed])
    said = [
        tool_event(
            one.entry.manifest.tool_id,
            EventType.TOOL_UPDATED,
            {"version": one.entry.manifest.version, "status": one.entry.manifest.status.value},
        )
        for one in changed
    ]
    await insert_new(connection, events, said)
