"""Imports many catalog entries at once, and keeps decisions made since their last import."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic import JsonValue
from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_files import CATALOG, ids_of_others
from engine.store.clock import timestamp
from engine.store.database import DatabaseAccess
from engine.store.evidence import forget_overtaken
from engine.store.rows.upserts import batches, insert_new, upsert_all
from engine.store.rows.version_rows import NewVersion, mark_activated, tool_event, write_versions
from engine.store.tables import events, sources, tool_versions, tools
from engine.store.tools import erase_tools
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.records import EventType

_tool = tools.c
_version = tool_versions.c
_source = sources.c

_AT_ONCE = 100
"""Entries per transaction: SQLite has one writer, and calls wait for it."""

EXTERNAL_ORIGIN = "external:"
"""Prefix of the origin of tools of external tables; the table's name follows."""
MCP_ORIGIN = "mcp-server:"
"""Prefix of the origin of tools of registered MCP servers; the server's name follows."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A version as its file has it. `mark` changes with any part of it."""

    version: NewVersion
    mark: str

    @property
    def manifest(self) -> ToolManifest:
        return self.version.manifest

    @property
    def imported(self) -> str:
        return f"{self.mark}@{self.manifest.version}"


def mark_of(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version as stored, in JSON text. `from_file`: the version of this tool in its catalog file."""

    tool_id: str
    version: str
    active_version: str
    from_file: str | None
    manifest: str
    raw: str | None
    sources: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class _Known:
    active_version: str
    category: str
    imported: str | None
    removed: bool
    versions: dict[str, tuple[str, str | None]]


class CatalogEntryTable(DatabaseAccess):
    """Reads and writes tools in the form of their files."""

    async def bring_in(self, entries: Sequence[CatalogEntry], origin: str) -> None:
        """Write the entries that changed since their last import, and activate new versions.

        A removed tool comes back only with another version. A change within a version changes neither which version is active nor its
        status, unless the file changes the status.
        """
        for some in batches(await self._changed(entries), _AT_ONCE):
            async with self._database.write(alone=CATALOG) as connection:
                known = await _known(connection, [entry.manifest.tool_id for entry in some])
                await _write(connection, [(entry, known.get(entry.manifest.tool_id)) for entry in some], origin)

    async def _changed(self, entries: Sequence[CatalogEntry]) -> Sequence[CatalogEntry]:
        """The entries that differ from their last import. Mostly few: the others need no lock and no parsing."""
        columns = (_tool.tool_id, _tool.imported)
        rows = await self._database.rows(select(*columns).where(_tool.removed_at.is_(None)))
        marks = {tool_id: imported for tool_id, imported in rows}
        return [entry for entry in entries if marks.get(entry.manifest.tool_id) != entry.imported]

    async def bring_in_versions(self, entries: Sequence[CatalogEntry]) -> None:
        """Write versions beside the active ones, if their file changed."""
        for some in batches(entries, _AT_ONCE):
            async with self._database.write(alone=CATALOG) as connection:
                known = await _known(connection, [entry.manifest.tool_id for entry in some])
                said_of = await _raws_of_sources(connection, list(known))
                new = [entry.version for entry in some if _is_news(entry.version, known, said_of)]
                await forget_overtaken(connection, [version.entry for version in new])
                await write_versions(connection, new)
                said: list[dict[str, object]] = []
                for one in new:
                    manifest = one.manifest
                    said.append(tool_event(manifest.tool_id, EventType.TOOL_UPDATED, {"version": manifest.version, "active": False}))
                await insert_new(connection, events, said)

    async def list_unmarked(self, origin: str) -> tuple[str, ...]:
        """Tools imported before imports left marks."""
        query = select(_tool.tool_id).where(_tool.origin == origin, _tool.imported.is_(None), _tool.removed_at.is_(None))
        return tuple(await self._database.scalars(query))

    async def forget(self, tool_ids: Iterable[str], origin: str, file: str, catalog: str) -> None:
        """Erase those of these tools that have this origin and are in no other catalog's file.

        Works in batches, so that calls need not wait for thousands.
        """
        for some in batches(tuple(tool_ids), _AT_ONCE):
            async with self._database.write(alone=CATALOG) as connection:
                kept = await ids_of_others(connection, file, catalog)
                there = select(_tool.tool_id).where(_tool.origin == origin, _tool.removed_at.is_(None), _tool.tool_id.in_(some))
                known = (await connection.scalars(there)).all()
                await erase_tools(connection, [tool_id for tool_id in known if tool_id not in kept])

    async def content_of(self) -> dict[tuple[str, str, str], str]:
        """Archives of local sources and scripts, by tool, version and folder or path."""
        query = select(_source.tool_id, _source.version, _source.source).where(_source.source.like('%"content":"%'))
        rows = await self._database.rows(query)
        found = [(tool_id, version, cast("dict[str, str]", json.loads(text))) for tool_id, version, text in rows]
        return {
            (tool_id, version, source.get("host_dir") or source.get("script_path", "")): source["content"]
            for tool_id, version, source in found
            if source.get("content")
        }

    async def list_stored(self, without_origin: str) -> tuple[StoredVersion, ...]:
        """Every version of every tool, by id, except tools of this origin, of external tables and of MCP servers."""
        columns = (_tool.tool_id, _tool.active_version, _tool.imported, _version.version, _version.manifest)
        query = (
            select(*columns, _version.raw)
            .join(tool_versions, _version.tool_id == _tool.tool_id)
            .where(_tool.removed_at.is_(None), _tool.origin != without_origin)
            .where(~_tool.origin.startswith(EXTERNAL_ORIGIN), ~_tool.origin.startswith(MCP_ORIGIN))
            .order_by(_tool.tool_id, _version.created_at, _version.version)
        )
        by_position = select(sources).order_by(_source.tool_id, _source.version, _source.position)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
            places = (await connection.execute(by_position)).mappings().all()
        found: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
        for place in places:
            found.setdefault((place["tool_id"], place["version"]), []).append((place["source"], place["raw"]))
        return tuple(
            StoredVersion(tool_id, version, active, _version_in(imported), manifest, raw, tuple(found.get((tool_id, version), ())))
            for tool_id, active, imported, version, manifest, raw in rows
        )


async def _known(connection: AsyncConnection, tool_ids: Sequence[str]) -> dict[str, _Known]:
    columns = (_tool.tool_id, _tool.active_version, _tool.category, _tool.imported, _tool.removed_at)
    rows = (await connection.execute(select(*columns).where(_tool.tool_id.in_(tool_ids)))).all()
    found = {row[0]: _Known(row[1], row[2], row[3], row[4] is not None, {}) for row in rows}
    written = select(_version.tool_id, _version.version, _version.manifest, _version.raw)
    versions: Sequence[Row[str, str, str, str | None]] = (await connection.execute(written.where(_version.tool_id.in_(tool_ids)))).all()
    for tool_id, version, manifest, raw in versions:
        if tool_id in found:
            found[tool_id].versions[version] = (manifest, raw)
    return found


async def _write(connection: AsyncConnection, pairs: Sequence[tuple[CatalogEntry, _Known | None]], origin: str) -> None:
    changed = [(entry, known) for entry, known in pairs if not _is_settled(entry, known)]
    moment = timestamp()
    rows: list[dict[str, object]] = []
    said: list[dict[str, object]] = []
    for entry, known in changed:
        manifest = entry.manifest
        stays = known is not None and _same_version(entry, known)
        rows.append(
            {
                "tool_id": manifest.tool_id,
                "active_version": known.active_version if known and stays else manifest.version,
                "category": known.category if known and stays and known.active_version != manifest.version else manifest.category,
                "origin": origin,
                "imported": entry.imported,
                "removed_at": None,
                "updated_at": moment,
            }
        )
        if not _is_first_mark(entry, known):
            kind = EventType.TOOL_ADDED if known is None or known.removed else EventType.TOOL_UPDATED
            said.append(tool_event(manifest.tool_id, kind, {"version": manifest.version, "origin": origin}))
    await upsert_all(connection, tools, rows)
    versions = [_with_kept_status(entry, known) for entry, known in changed]
    await forget_overtaken(connection, [version.entry for version in versions])
    await write_versions(connection, versions)
    before = {entry.manifest.tool_id: known.active_version for entry, known in changed if known and not known.removed}
    chosen = [(str(row["tool_id"]), str(row["active_version"])) for row in rows]
    await mark_activated(connection, *(one for one in chosen if before.get(one[0]) != one[1]))
    await insert_new(connection, events, said)


def _is_settled(entry: CatalogEntry, known: _Known | None) -> bool:
    if known is None:
        return False
    if known.removed:
        # The version that the file had at the removal, whichever version was active.
        return (_version_in(known.imported) or known.active_version) == entry.manifest.version
    return known.imported == entry.imported


def _same_version(entry: CatalogEntry, known: _Known) -> bool:
    """Whether the file already had this version at its last import."""
    return not known.removed and _version_in(known.imported) == entry.manifest.version


def _is_first_mark(entry: CatalogEntry, known: _Known | None) -> bool:
    """Whether this entry only adds the mark to a tool from before there were marks."""
    if known is None or known.removed or known.imported is not None:
        return False
    manifest, _ = known.versions.get(entry.manifest.version, ("", None))
    return manifest == entry.manifest.model_dump_json(by_alias=True)


def _with_kept_status(entry: CatalogEntry, known: _Known | None) -> NewVersion:
    """Keeps the stored status if the entry changed but its status did not."""
    version = entry.version
    manifest = version.manifest
    if known is None or not _same_version(entry, known) or manifest.version not in known.versions:
        return version
    text, raw = known.versions[manifest.version]
    if raw is None or _status_in(raw) != _status_in(version.raw):
        return version
    kept = manifest.model_copy(update={"status": ToolManifest.model_validate_json(text).status})
    return replace(version, entry=version.entry.model_copy(update={"manifest": kept}))


async def _raws_of_sources(connection: AsyncConnection, tool_ids: Sequence[str]) -> dict[tuple[str, str], tuple[str | None, ...]]:
    query = select(_source.tool_id, _source.version, _source.raw).where(_source.tool_id.in_(tool_ids))
    found: dict[tuple[str, str], tuple[str | None, ...]] = {}
    for tool_id, version, raw in (await connection.execute(query.order_by(_source.position))).all():
        found[tool_id, version] = (*found.get((tool_id, version), ()), raw)
    return found


def _is_news(version: NewVersion, tools_there: dict[str, _Known], said_of: dict[tuple[str, str], tuple[str | None, ...]]) -> bool:
    """Whether the file changed this version. False if the tool itself does not exist."""
    manifest = version.manifest
    known = tools_there.get(manifest.tool_id)
    if known is None or known.removed:
        return False
    stored = known.versions.get(manifest.version)
    return stored is None or stored[1] != version.raw or said_of.get((manifest.tool_id, manifest.version), ()) != version.source_raws


def _status_in(raw: str | None) -> JsonValue:
    document: JsonValue = json.loads(raw) if raw else None
    return document.get("status", ToolStatus.ACTIVE.value) if isinstance(document, dict) else None


def _version_in(imported: str | None) -> str | None:
    return imported.partition("@")[2] if imported else None
