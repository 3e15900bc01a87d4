"""The tables `tools`, `tool_versions` and `sources`: what tools there are and where they run from."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from pydantic import JsonValue, TypeAdapter
from sqlalchemy import Row, Select, and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import now, timestamp
from engine.store.database import Database
from engine.store.events import event_row
from engine.store.tables import events, sources, tool_versions, tools
from engine.store.upserts import insert_new, upsert
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.sources import ToolSource

__all__ = ["ToolTable"]

_SOURCE: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)


class ToolTable:
    """All versions of all tools. Removed tools stay as a mark, so that a catalog file does not bring them back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, tool_id: str, version: str | None = None) -> ToolEntry | None:
        """One version, the active one if none is named."""
        wanted = tools.c.active_version if version is None else version
        query = _entries().where(tools.c.tool_id == tool_id, tool_versions.c.version == wanted)
        async with self._database.read() as connection:
            entries = _collect((await connection.execute(query)).all())
        return entries[0] if entries else None

    async def list_active_versions(self, category: str | None = None) -> tuple[ToolEntry, ...]:
        """The active version of every tool, by id."""
        query = _entries().where(tool_versions.c.version == tools.c.active_version)
        if category is not None:
            query = query.where(tools.c.category == category)
        async with self._database.read() as connection:
            return _collect((await connection.execute(query)).all())

    async def list_ids(self, origin: str | None = None) -> tuple[str, ...]:
        """The ids of all tools, or of those that came from somewhere."""
        query = select(tools.c.tool_id).where(tools.c.removed_at.is_(None)).order_by(tools.c.tool_id)
        if origin is not None:
            query = query.where(tools.c.origin == origin)
        async with self._database.read() as connection:
            return tuple((await connection.execute(query)).scalars())

    async def put(self, entry: ToolEntry, origin: str) -> None:
        """Write a version with its sources and make it the active one. Revives a removed tool."""
        manifest = entry.manifest
        moment = timestamp(now())
        async with self._database.write() as connection:
            row = {
                "tool_id": manifest.tool_id,
                "active_version": manifest.version,
                "category": manifest.category,
                "origin": origin,
                "removed_at": None,
                "updated_at": moment,
            }
            known = (await connection.execute(_known(manifest.tool_id))).scalar_one_or_none() is not None
            await upsert(connection, tools, row)
            version = {"tool_id": manifest.tool_id, "version": manifest.version}
            document = {"manifest": manifest.model_dump_json(by_alias=True), "created_at": moment}
            await upsert(connection, tool_versions, version | document, once=("created_at",))
            await _put_sources(connection, manifest.tool_id, manifest.version, entry.sources)
            kind = EventType.TOOL_UPDATED if known else EventType.TOOL_ADDED
            await _say(connection, manifest.tool_id, kind, {"version": manifest.version, "origin": origin})

    async def put_sources(self, tool_id: str, version: str, new: Iterable[ToolSource]) -> None:
        async with self._database.write() as connection:
            await _put_sources(connection, tool_id, version, tuple(new))

    async def remove(self, tool_id: str) -> tuple[int, int]:
        """Forget all versions. Returns how many versions and how many sources went; the active version stays as a mark."""
        async with self._database.write() as connection:
            versions = await connection.execute(delete(tool_versions).where(tool_versions.c.tool_id == tool_id))
            gone = await connection.execute(delete(sources).where(sources.c.tool_id == tool_id))
            if (version := (await connection.execute(_known(tool_id))).scalar_one_or_none()) is not None:
                await _say(connection, tool_id, EventType.TOOL_REMOVED, {"version": version})
            await connection.execute(update(tools).where(tools.c.tool_id == tool_id).values(removed_at=timestamp(now())))
            return versions.rowcount, gone.rowcount

    async def erase(self, tool_id: str) -> None:
        """Forget a tool without leaving a mark."""
        async with self._database.write() as connection:
            if (version := (await connection.execute(_known(tool_id))).scalar_one_or_none()) is not None:
                await _say(connection, tool_id, EventType.TOOL_REMOVED, {"version": version})
            for table in (tool_versions, sources, tools):
                await connection.execute(delete(table).where(table.c.tool_id == tool_id))

    async def removed_version(self, tool_id: str) -> str | None:
        """The version that was active when the tool was removed; None when it was not removed."""
        query = select(tools.c.active_version).where(tools.c.tool_id == tool_id, tools.c.removed_at.is_not(None))
        async with self._database.read() as connection:
            return (await connection.execute(query)).scalar_one_or_none()


def _known(tool_id: str) -> Select[str]:
    """The active version of a tool that is there."""
    return select(tools.c.active_version).where(tools.c.tool_id == tool_id, tools.c.removed_at.is_(None))


async def _say(connection: AsyncConnection, tool_id: str, kind: EventType, details: dict[str, JsonValue]) -> None:
    """In the transaction of what happened: there is no event without it, and nothing happens without its event."""
    at = now()
    event = Event(event_id=f"{tool_id}:{kind.value}:{timestamp(at)}", event_type=kind, tool_id=tool_id, at=at, details=details)
    await insert_new(connection, events, [event_row(event)])


def _entries() -> Select[str, str, str, str | None]:
    same_version = and_(sources.c.tool_id == tool_versions.c.tool_id, sources.c.version == tool_versions.c.version)
    return (
        select(tools.c.tool_id, tool_versions.c.version, tool_versions.c.manifest, sources.c.source)
        .join(tool_versions, tool_versions.c.tool_id == tools.c.tool_id)
        .outerjoin(sources, same_version)
        .where(tools.c.removed_at.is_(None))
        .order_by(tools.c.tool_id, tool_versions.c.version, sources.c.position)
    )


async def _put_sources(connection: AsyncConnection, tool_id: str, version: str, new: Sequence[ToolSource]) -> None:
    await connection.execute(delete(sources).where(sources.c.tool_id == tool_id, sources.c.version == version))
    for position, source in enumerate(new):
        row = {"tool_id": tool_id, "version": version, "position": position, "source": source.model_dump_json()}
        await upsert(connection, sources, row)


def _collect(rows: Iterable[Row[str, str, str, str | None]]) -> tuple[ToolEntry, ...]:
    found: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for tool_id, version, manifest, source in rows:
        _, texts = found.setdefault((tool_id, version), (manifest, []))
        if source is not None:
            texts.append(source)
    return tuple(_parse(manifest, tuple(texts)) for manifest, texts in found.values())


@lru_cache(maxsize=4096)
def _parse(manifest: str, source_texts: tuple[str, ...]) -> ToolEntry:
    return ToolEntry(manifest=ToolManifest.model_validate_json(manifest), sources=tuple(map(_SOURCE.validate_json, source_texts)))
