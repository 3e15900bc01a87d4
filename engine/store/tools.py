"""The tables `tools`, `tool_versions` and `sources`: the tools and where they run from."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from pydantic import JsonValue, TypeAdapter
from sqlalchemy import Row, Select, and_, bindparam, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_files import CATALOG
from engine.store.clock import timestamp
from engine.store.database import DatabaseAccess
from engine.store.evidence import forget_evidence, forget_overtaken, is_in_the_way, write_evidence
from engine.store.file_references import holder_of_version, release_files
from engine.store.groups import is_anothers_group, write_group
from engine.store.rows.upserts import batches, insert_new
from engine.store.rows.version_rows import NewVersion, make_active, mark_activated, put_versions, say, tool_event
from engine.store.tables import events, sources, tool_versions, tools
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Evidence
from toolagent.contracts.manifest import SchedulingMode, ToolGroup, ToolManifest, ToolStatus
from toolagent.contracts.records import EventType
from toolagent.contracts.sources import ToolSource
from toolagent.contracts.versions import ToolVersion

_tool = tools.c
_version = tool_versions.c
_source = sources.c

_AT_ONCE = 100
_REMEMBERED = 16_384
"""Number of cached parsed versions. A larger catalog is parsed again for each list."""

_IS_HEAD = and_(_version.version == _tool.active_version, _version.activated_at.is_not(None))
"""Excludes tools that wait for their first activation."""

_IS_ACTIVE = and_(_tool.removed_at.is_(None), _IS_HEAD)

_SOURCE: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)


class ToolTable(DatabaseAccess):
    """All versions of all tools. Removed tools leave a mark, so that a catalog file does not bring them back."""

    async def get(self, tool_id: str, version: str | None = None) -> ToolEntry | None:
        """A version, by default the active one."""
        query = _ACTIVE if version is None else _VERSION
        entries = collected(await self._database.rows(query, {"tool": tool_id, "version": version}))
        return entries[0] if entries else None

    async def list_active_versions(self, category: str | None = None) -> tuple[ToolEntry, ...]:
        """The active version of every tool, by id, except tools that wait for their first activation."""
        query = stored_versions().where(_IS_HEAD)
        if category is not None:
            query = query.where(_tool.category == category)
        rows = await self._database.rows(query)
        # In a thread, because parsing ten thousand takes seconds.
        return await asyncio.to_thread(collected, rows)

    async def list_some(self, tool_ids: Sequence[str]) -> tuple[ToolEntry, ...]:
        """The active versions of those of these tools that exist, in this order, except tools that wait for their first activation."""
        found: dict[str, ToolEntry] = {}
        for some in batches(tool_ids, _AT_ONCE):
            query = stored_versions().where(_tool.tool_id.in_(some), _IS_HEAD)
            found |= {entry.manifest.tool_id: entry for entry in collected(await self._database.rows(query))}
        return tuple(found[tool_id] for tool_id in tool_ids if tool_id in found)

    async def of_source_type(self, source_type: str) -> tuple[ToolEntry, ...]:
        """The active version of every tool with a source of this type, by id."""
        of_type = select(_source.tool_id).where(_source.source.contains(f'"type":"{source_type}"', autoescape=True))
        query = stored_versions().where(_version.version == _tool.active_version, _tool.tool_id.in_(of_type))
        found = collected(await self._database.rows(query))
        return tuple(entry for entry in found if any(source.type == source_type for source in entry.sources))

    async def active_manifests(self) -> tuple[tuple[str, str], ...]:
        """The id and the manifest, as JSON, of the active version of every tool."""
        query = select(_tool.tool_id, _version.manifest).join(tool_versions, _version.tool_id == _tool.tool_id)
        rows = await self._database.rows(query.where(_IS_ACTIVE).order_by(_tool.tool_id))
        return tuple((tool_id, manifest) for tool_id, manifest in rows)

    async def list_versions(self) -> tuple[ToolEntry, ...]:
        """Every version of every tool, by id."""
        return collected(await self._database.rows(stored_versions()))

    async def list_ids(self, origin: str | None = None) -> tuple[str, ...]:
        """Ids of all tools, or of those with this origin."""
        query = select(_tool.tool_id).where(_tool.removed_at.is_(None)).order_by(_tool.tool_id)
        if origin is not None:
            query = query.where(_tool.origin == origin)
        return tuple(await self._database.scalars(query))

    async def counts(self) -> tuple[int, int]:
        """The number of tools, and of those whose active version is callable."""
        # Parse only manifests whose text suggests another status: parsing ten thousand takes most of a second.
        text = _version.manifest
        others = (text.contains(f'"status":"{status.value}"') for status in ToolStatus if status is not ToolStatus.ACTIVE)
        doubtful = or_(~text.contains(f'"status":"{ToolStatus.ACTIVE.value}"'), *others)
        query = select(text).select_from(tools).join(tool_versions, _tool.tool_id == _version.tool_id)
        found = await self._database.scalars(query.where(_IS_ACTIVE, doubtful))
        all_tools = await self._database.scalar(select(func.count()).select_from(tools).where(_tool.removed_at.is_(None))) or 0
        return all_tools, all_tools - sum(ToolManifest.model_validate_json(one).status is not ToolStatus.ACTIVE for one in found)

    async def scheduling_modes(self) -> dict[str, SchedulingMode]:
        """Scheduling modes of callable tools whose active version names one."""
        # Most name none, and parsing a thousand manifests takes a second.
        names_one = _version.manifest.like('%"scheduling_mode":"%')
        columns = select(_tool.tool_id, _version.manifest).join(tools, _tool.tool_id == _version.tool_id)
        query = columns.where(_IS_ACTIVE, names_one)
        rows = [(tool_id, ToolManifest.model_validate_json(manifest)) for tool_id, manifest in await self._database.rows(query)]
        callable_ones = {tool_id: manifest for tool_id, manifest in rows if manifest.status is ToolStatus.ACTIVE}
        return {tool_id: manifest.scheduling_mode for tool_id, manifest in callable_ones.items() if manifest.scheduling_mode}

    async def put(self, entry: ToolEntry, origin: str) -> None:
        """Write a version with its sources and activate it. Revives a removed tool."""
        async with self._database.write(alone=CATALOG) as connection:
            await forget_overtaken(connection, (entry,))
            await put_version(connection, entry, origin)

    async def put_made(
        self, made: Sequence[tuple[ToolEntry, Evidence]], group: ToolGroup | None = None, mends: str | None = None
    ) -> str | None:
        """`put` all that a task made, with evidence and group. If something prevents it, write nothing and return its id.

        That is a tool that the task did not make, or a group (see `is_anothers_group`). For a repair of the version `mends`, it is a
        tool that has another active version now, or has this version from another task.
        """
        async with self._database.write(alone=CATALOG) as connection:
            for entry, evidence in made:
                if await is_in_the_way(connection, entry.manifest, evidence.task_id, mends):
                    return entry.manifest.tool_id
            if group is not None and await is_anothers_group(connection, group.group_id, made[0][1].task_id):
                return group.group_id
            for entry, evidence in made:
                await write_evidence(connection, entry.manifest.tool_id, entry.manifest.version, evidence)
                await put_version(connection, entry, f"task:{evidence.task_id}")
            if group is not None:
                await write_group(connection, group)
        return None

    async def versions(self, tool_id: str) -> tuple[ToolVersion, ...]:
        """All versions of a tool; empty if it does not exist."""
        columns = (_version.version, _version.manifest, _version.created_at, _tool.active_version)
        query = (
            select(*columns)
            .join(tools, _tool.tool_id == _version.tool_id)
            .where(_tool.tool_id == tool_id, _tool.removed_at.is_(None))
            .order_by(_version.created_at, _version.version)
        )
        rows = await self._database.rows(query)
        return tuple(
            ToolVersion(
                tool_id=tool_id,
                version=version,
                status=_parse(manifest, ()).manifest.status,
                is_active=version == active,
                created_at=datetime.fromisoformat(created_at),
            )
            for version, manifest, created_at, active in rows
        )

    async def activate(self, tool_id: str, version: str) -> bool:
        """Make a version callable and active. False if it does not exist."""
        async with self._database.write(alone=CATALOG) as connection:
            manifest = await _set_status(connection, tool_id, version, ToolStatus.ACTIVE)
            if manifest is None:
                return False
            active = (await connection.execute(_known(tool_id))).scalar_one()
            if active != version:
                await make_active(connection, manifest, before=active)
            if active != version or await _was_never_active(connection, tool_id, version):
                await mark_activated(connection, (tool_id, version))
            return True

    async def roll_back(self, tool_id: str, leaving: str | None = None) -> str | None:
        """Activate the callable version that was active last before the current one. None, and no change, if there is none.

        The current version becomes inactive, because calls for a range would still get it. So a repeated rollback goes further back,
        never forward. With `leaving`, nothing happens unless that version is active. Returns the active version.
        """
        async with self._database.write(alone=CATALOG) as connection:
            active = await connection.scalar(_known(tool_id))
            if leaving not in {None, active}:
                return active
            target = await _before(connection, tool_id, active)
            if active is None or target is None:
                return None
            await _set_status(connection, tool_id, active, ToolStatus.INACTIVE)
            # Its `activated_at` stays: it must not sort after the versions that followed it.
            await make_active(connection, target, before=active, rolled_back=True)
            return target.version

    async def before_active(self, tool_id: str) -> str | None:
        """The version that `roll_back` would activate."""
        async with self._database.read() as connection:
            found = await _before(connection, tool_id, await connection.scalar(_known(tool_id)))
        return found.version if found is not None else None

    async def add_slugs(self, tool_id: str, version: str, slugs: Sequence[str]) -> None:
        """Add slugs to a version's `tool_slug_ids`. Writes nothing if it has them or does not exist."""
        async with self._database.write(alone=CATALOG) as connection:
            text = await connection.scalar(_manifest(tool_id, version))
            if text is None:
                return
            before = ToolManifest.model_validate_json(text)
            after = before.model_copy(update={"tool_slug_ids": tuple(dict.fromkeys((*before.tool_slug_ids, *slugs)))})
            if after != before:
                await _rewrite(connection, after)
                await say(connection, tool_id, EventType.TOOL_UPDATED, {"version": version, "tool_slug_ids": [*after.tool_slug_ids]})

    async def deactivate(self, tool_id: str, version: str) -> bool:
        """Make a version not callable. False if it does not exist."""
        async with self._database.write(alone=CATALOG) as connection:
            return await _set_status(connection, tool_id, version, ToolStatus.INACTIVE) is not None

    async def remove(self, tool_id: str) -> tuple[int, int]:
        """Remove all versions; a mark stays. Returns the number of removed versions and of sources."""
        async with self._database.write(alone=CATALOG) as connection:
            await _release(connection, tool_id)
            await forget_evidence(connection, tool_id)
            versions = await connection.execute(delete(tool_versions).filter_by(tool_id=tool_id))
            gone = await connection.execute(delete(sources).filter_by(tool_id=tool_id))
            if (version := await connection.scalar(_known(tool_id))) is not None:
                await say(connection, tool_id, EventType.TOOL_REMOVED, {"version": version})
            await connection.execute(update(tools).filter_by(tool_id=tool_id).values(removed_at=timestamp()))
            return versions.rowcount, gone.rowcount


async def put_version(connection: AsyncConnection, entry: ToolEntry, origin: str) -> None:
    """Write a version and activate it."""
    tool_id = entry.manifest.tool_id
    is_known = await connection.scalar(_known(tool_id)) is not None
    await put_versions(connection, (NewVersion(entry),), origin, known=(tool_id,) if is_known else ())


async def erase_tools(connection: AsyncConnection, tool_ids: Sequence[str]) -> None:
    """Remove tools without leaving a mark."""
    for some in batches(tool_ids, _AT_ONCE):
        await _erase(connection, some)


async def _erase(connection: AsyncConnection, tool_ids: Sequence[str]) -> None:
    active = select(_tool.tool_id, _tool.active_version).where(_tool.tool_id.in_(tool_ids), _tool.removed_at.is_(None))
    there = (await connection.execute(active)).all()
    await insert_new(connection, events, [tool_event(tool_id, EventType.TOOL_REMOVED, {"version": version}) for tool_id, version in there])
    versions = select(_version.tool_id, _version.version).where(_version.tool_id.in_(tool_ids))
    await release_files(connection, *[holder_of_version(*version) for version in (await connection.execute(versions)).all()])
    await forget_evidence(connection, *tool_ids)
    for table in (tool_versions, sources, tools):
        await connection.execute(delete(table).where(table.c.tool_id.in_(tool_ids)))


async def _was_never_active(connection: AsyncConnection, tool_id: str, version: str) -> bool:
    """Whether the version still waits for its first activation."""
    return await connection.scalar(select(_version.activated_at).filter_by(tool_id=tool_id, version=version)) is None


def _known(tool_id: str) -> Select[str]:
    """The active version of an existing tool."""
    return select(_tool.active_version).where(_tool.tool_id == tool_id, _tool.removed_at.is_(None))


def _manifest(tool_id: str, version: str) -> Select[str]:
    return (
        select(_version.manifest)
        .join(tools, _tool.tool_id == _version.tool_id)
        .where(_tool.tool_id == tool_id, _version.version == version, _tool.removed_at.is_(None))
    )


async def _before(connection: AsyncConnection, tool_id: str, active: str | None) -> ToolManifest | None:
    """The callable version that was active last, except this one."""
    query = select(_version.manifest).filter_by(tool_id=tool_id)
    query = query.where(_version.version != active, _version.activated_at.is_not(None))
    texts = await connection.scalars(query.order_by(_version.activated_at.desc(), _version.created_at.desc()))
    manifests = map(ToolManifest.model_validate_json, texts.all())
    return next((manifest for manifest in manifests if manifest.status is ToolStatus.ACTIVE), None)


async def _set_status(connection: AsyncConnection, tool_id: str, version: str, status: ToolStatus) -> ToolManifest | None:
    """Set the status of a version, and return its manifest; None if it does not exist."""
    text = await connection.scalar(_manifest(tool_id, version))
    if text is None:
        return None
    before = ToolManifest.model_validate_json(text)
    after = before.model_copy(update={"status": status})
    if after != before:
        await _rewrite(connection, after)
        details: dict[str, JsonValue] = {"version": version, "status": status.value, "before": before.status.value}
        await say(connection, tool_id, EventType.TOOL_UPDATED, details)
    return after


async def _rewrite(connection: AsyncConnection, manifest: ToolManifest) -> None:
    this = update(tool_versions).filter_by(tool_id=manifest.tool_id, version=manifest.version)
    await connection.execute(this.values(manifest=manifest.model_dump_json(by_alias=True)))


async def _release(connection: AsyncConnection, tool_id: str) -> None:
    versions = (await connection.scalars(select(_version.version).filter_by(tool_id=tool_id))).all()
    await release_files(connection, *[holder_of_version(tool_id, version) for version in versions])


def stored_versions() -> Select[str, str, str, str | None]:
    """Every version of every existing tool, one row per source."""
    same_version = and_(_source.tool_id == _version.tool_id, _source.version == _version.version)
    return (
        select(_tool.tool_id, _version.version, _version.manifest, _source.source)
        .join(tool_versions, _version.tool_id == _tool.tool_id)
        .outerjoin(sources, same_version)
        .where(_tool.removed_at.is_(None))
        .order_by(_tool.tool_id, _version.version, _source.position)
    )


# For every call, several times: building a statement takes longer than running it.
_ACTIVE = stored_versions().where(_tool.tool_id == bindparam("tool"), _version.version == _tool.active_version)
_VERSION = stored_versions().where(_tool.tool_id == bindparam("tool"), _version.version == bindparam("version"))


def collected(rows: Iterable[Row[str, str, str, str | None]]) -> tuple[ToolEntry, ...]:
    """The entries of rows of `stored_versions`."""
    found: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for tool_id, version, manifest, source in rows:
        _, texts = found.setdefault((tool_id, version), (manifest, []))
        if source is not None:
            texts.append(source)
    return tuple(_parse(manifest, tuple(texts)) for manifest, texts in found.values())


@lru_cache(maxsize=_REMEMBERED)
def _parse(manifest: str, source_texts: tuple[str, ...]) -> ToolEntry:
    return ToolEntry(manifest=ToolManifest.model_validate_json(manifest), sources=tuple(map(_SOURCE.validate_json, source_texts)))
