"""Imports catalog files and built-in tools into the registry.

Faulty entries are reported and do not stop the others.
"""

import asyncio
import gc
import json
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue

from engine.registry.archives import NotPackedError, ProjectArchives
from engine.registry.formats import containers_json, groups_json, mcp_json, registry_json, sources_json, versions_json
from engine.registry.formats.document import Parsed, shown
from engine.registry.reading import CatalogReading, read_catalog
from engine.registry.secret_vault import SecretKeeper
from engine.registry.server_secrets import forget_keys
from engine.registry.tool_files_import import ToolFilesImport
from engine.store.catalog_entries import CatalogEntry, CatalogEntryTable, mark_of
from engine.store.catalog_files import CatalogDocuments, CatalogFile, CatalogFileTable
from engine.store.containers import ContainerTable
from engine.store.database import Database
from engine.store.faults import FaultTable
from engine.store.groups import GroupTable
from engine.store.mcp_servers import McpServerRows
from engine.store.rows.version_rows import NewVersion
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolGroup, ToolManifest
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.sources import PackedSource, ToolSource
from toolagent.core.catalog.dependencies import Node
from toolagent_service.contracts.containers import ContainerInfo

FILES_ORIGIN = "catalog"
BUILTIN_ORIGIN = "builtin"
_AT_ONCE = 50
_RARELY = 1_000_000
Contents = dict[tuple[str, str, str], str]
Listed = TypeVar("Listed", ToolGroup, ContainerInfo)


@dataclass(slots=True)
class _Prepared:
    """The changes to write."""

    entries: list[CatalogEntry]
    versions: list[CatalogEntry]
    faults: list[CatalogFault]


class CatalogImport:
    """Imports the files of one host's data folder. `catalog` is the id of the host: hosts on one database may have different folders.

    Only entries that this catalog has or had change: tools of other catalogs stay.
    """

    def __init__(
        self,
        database: Database,
        archives: ProjectArchives,
        vault: SecretKeeper,
        catalog: str = "",
        tool_files: ToolFilesImport | None = None,
    ) -> None:
        self._tools = ToolTable(database)
        self._entries = CatalogEntryTable(database)
        self._groups = GroupTable(database)
        self._containers = ContainerTable(database)
        self._files = CatalogFileTable(database)
        self._faults = FaultTable(database)
        self._servers = McpServerRows(database)
        self._archives = archives
        self._vault = vault
        self._catalog = catalog
        self._tool_files = tool_files
        self._turn = asyncio.Lock()

    async def run(self, data_dir: Path, builtins: Iterable[ToolEntry], *, expected: bool = True) -> tuple[CatalogFault, ...]:
        """Import everything that changed, and return the faults. Faulty entries keep their earlier state.

        If no data folder is `expected`, a missing one is no fault: other hosts' catalogs have the tools.
        Raises StoreUnavailableError; then the next import continues.
        """
        async with self._turn:
            with _without_long_pauses():
                return await self._run(data_dir, builtins, expected)

    async def _run(self, data_dir: Path, builtins: Iterable[ToolEntry], expected: bool) -> tuple[CatalogFault, ...]:
        builtin = {entry.manifest.tool_id: entry for entry in builtins}
        await self._entries.bring_in([_builtin(entry) for entry in builtin.values()], BUILTIN_ORIGIN)
        reading = await asyncio.to_thread(read_catalog, data_dir, self._vault, expected=expected)
        prepared = await self._prepare(reading, data_dir, builtin)
        loaded = await self._tool_files.load(_taken(builtin, reading), _needing(reading)) if self._tool_files else None
        # Remove first: another file may use the same id now.
        await self._forget_missing(reading)
        if self._tool_files and loaded:
            await self._tool_files.leave(loaded)
        await self._entries.bring_in(prepared.entries, FILES_ORIGIN)
        await self._entries.bring_in_versions(prepared.versions)
        await self._bring_in_lists(reading)
        of_servers = await self._bring_in_servers(reading)
        for parsed in reading.files:
            if parsed.is_there and parsed.readable:
                await self._files.save(self._catalog, parsed.file, CatalogFile(parsed.envelope, tuple(parsed.mentioned)))
        of_tool_files = await self._tool_files.enter(loaded) if self._tool_files and loaded else []
        known = {*builtin, *reading.tools.mentioned, *await self._tools.list_ids()}
        of_files = [fault for parsed in reading.files for fault in parsed.faults]
        faults = [*map(shown, (*of_files, *prepared.faults, *of_tool_files, *of_servers, *_strangers(reading, known)))]
        await self._faults.replace(faults, self._catalog)
        return tuple(faults)

    async def _prepare(self, reading: CatalogReading, data_dir: Path, builtin: dict[str, ToolEntry]) -> _Prepared:
        prepared = _Prepared([], [], [])
        contents = await self._entries.content_of()
        for number, manifest in enumerate(reading.tools.entries.values()):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)  # calls go on meanwhile
            if manifest.tool_id in builtin:
                prepared.faults.append(_fault(registry_json.FILE_NAME, f"{manifest.tool_id}.tool_id", "A built-in tool has this id."))
                continue
            entry = ToolEntry(manifest=manifest, sources=reading.sources.entries.get(manifest.tool_id, ()))
            if not reading.sources.readable:
                entry = await self._with_known_sources(entry)
            entry, remarks = _reconcile(entry, sources_known=reading.sources.readable)
            entry, faults = await self._with_content(entry, data_dir, contents)
            prepared.faults += [*remarks, *faults]
            source_raws = reading.sources.raws.get(manifest.tool_id, [])
            prepared.entries.append(_catalog_entry(entry, reading.tools.raws[manifest.tool_id], source_raws))
        for name, other in reading.versions.entries.items():
            entry, faults = await self._with_content(other, data_dir, contents)
            prepared.faults += [fault.model_copy(update={"file": versions_json.FILE_NAME}) for fault in faults]
            if entry.sources:
                entry = _with_runtime(entry)
            raw = reading.versions.raws[name]
            source_raws = raw.get("sources") if isinstance(raw, dict) else None
            manifest_raw: JsonValue = {key: value for key, value in raw.items() if key != "sources"} if isinstance(raw, dict) else raw
            prepared.versions.append(_catalog_entry(entry, manifest_raw, source_raws))
        return prepared

    async def _with_known_sources(self, entry: ToolEntry) -> ToolEntry:
        """The entry with its stored sources, for an unreadable `sources.json`."""
        stored = await self._tools.get(entry.manifest.tool_id, entry.manifest.version) or await self._tools.get(entry.manifest.tool_id)
        return entry.model_copy(update={"sources": stored.sources}) if stored else entry

    async def _with_content(self, entry: ToolEntry, data_dir: Path, contents: Contents) -> tuple[ToolEntry, list[CatalogFault]]:
        """The entry with the archives of its sources' folders, and faults."""
        manifest = entry.manifest
        faults: list[CatalogFault] = []
        sources: list[ToolSource] = []
        for source in entry.sources:
            if source.folder is not None:
                known = contents.get((manifest.tool_id, manifest.version, source.folder))
                content, reason = await self._content_of(source.archive, source.folder, manifest, data_dir, known)
                if reason:
                    faults.append(_fault(sources_json.FILE_NAME, f"$.sources.{manifest.tool_id}", reason))
                sources.append(source.packed_as(content))
            else:
                sources.append(source)
        return entry.model_copy(update={"sources": tuple(sources)}), faults

    async def _content_of(
        self, archive: str | None, host_dir: str, manifest: ToolManifest, data_dir: Path, known: str | None
    ) -> tuple[str | None, str | None]:
        """The archive and its fault: the archive that the file names, else that of the folder, else the known one."""
        if archive is not None:
            self._archives.note(archive, data_dir / host_dir, manifest.tool_id)
            if await self._archives.has(archive) or await self._archives.remake(archive):
                return archive, None
            reason = f"The files of {manifest.tool_id}@{manifest.version} ({archive}) are not in the content store; calls will fail."
            return archive, f"{reason} Leave out `content` to take those of the folder {host_dir!r}."
        try:
            packed = await self._archives.content_of(data_dir / host_dir, manifest.tool_id)
        except NotPackedError as error:
            return known, f"{host_dir}: {error}"
        return packed or known, None

    async def _forget_missing(self, reading: CatalogReading) -> None:
        if not reading.tools.readable:
            return
        before = await self._files.of_file(registry_json.FILE_NAME)
        # Tools without a mark were imported before the table `catalog_files` existed.
        mine = before[self._catalog].entry_ids if self._catalog in before else await self._entries.list_unmarked(FILES_ORIGIN)
        mentioned = tuple(reading.tools.mentioned)
        if not set(mentioned) <= set(mine):
            # Claim the new tools first, so that another catalog that had them does not remove them meanwhile.
            claimed = tuple(dict.fromkeys((*mentioned, *mine)))
            await self._files.save(self._catalog, registry_json.FILE_NAME, CatalogFile(reading.tools.envelope, claimed))
        gone = [tool_id for tool_id in mine if tool_id not in reading.tools.mentioned]
        if gone:
            await self._entries.forget(gone, FILES_ORIGIN, registry_json.FILE_NAME, self._catalog)

    async def _bring_in_lists(self, reading: CatalogReading) -> None:
        known = [group.group_id for group in await self._groups.list_all()] if reading.groups.readable else []
        await self._bring_in_list(reading.groups, self._groups, known)
        await self._bring_in_list(reading.containers, self._containers, ())

    async def _bring_in_list(self, parsed: Parsed[Listed], table: CatalogDocuments[Listed], otherwise: Iterable[str]) -> None:
        if parsed.readable:
            entries = [(entry, json.dumps(parsed.raws[key])) for key, entry in parsed.entries.items()]
            await table.bring_in(entries, await self._gone(parsed, otherwise))

    async def _bring_in_servers(self, reading: CatalogReading) -> list[CatalogFault]:
        """Import the servers. Their tools are listed later."""
        if not reading.servers.readable:
            return []
        gone = await self._gone(reading.servers, ())
        brought = await self._servers.bring_in(reading.servers.entries, sorted(gone))
        for server in brought.before:
            await forget_keys(server.name, server.spec, self._servers, self._vault)
        reason = "An MCP server that was registered, or a group, has this name. Remove that, or choose another name."
        return [_fault(mcp_json.FILE_NAME, f"$.mcpServers.{name}", reason) for name in brought.refused]

    async def _gone(self, parsed: Parsed[Any], otherwise: Iterable[str]) -> set[str]:
        """Ids that were removed from this catalog's file and are in no other catalog."""
        before = await self._files.of_file(parsed.file)
        kept = {entry for catalog, one in before.items() if catalog != self._catalog for entry in one.entry_ids}
        mine = before[self._catalog].entry_ids if self._catalog in before else (otherwise if not before else ())
        return {*mine} - kept - parsed.mentioned.keys()


@contextmanager
def _without_long_pauses() -> Generator[None]:
    """Postpone full garbage collections: with a large catalog in memory, one stops every call for up to half a second."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, _RARELY)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)


def _taken(builtin: Iterable[str], reading: CatalogReading) -> dict[str, str]:
    """Ids that no tool file may use, with their owners."""
    return {**dict.fromkeys(reading.tools.mentioned, registry_json.FILE_NAME), **dict.fromkeys(builtin, "A built-in tool")}


def _needing(reading: CatalogReading) -> list[Node]:
    manifests = (*reading.tools.entries.values(), *(entry.manifest for entry in reading.versions.entries.values()))
    return [Node(manifest.tool_id, manifest.version, manifest.dependencies) for manifest in manifests]


def _builtin(entry: ToolEntry) -> CatalogEntry:
    return CatalogEntry(NewVersion(entry), mark_of(entry.model_dump_json()))


def _catalog_entry(entry: ToolEntry, raw: JsonValue, source_raws: JsonValue) -> CatalogEntry:
    contents = [str(source.archive) for source in entry.sources if isinstance(source, PackedSource)]
    texts = tuple(map(json.dumps, source_raws)) if isinstance(source_raws, list) else ()
    text = json.dumps(raw)
    return CatalogEntry(NewVersion(entry, text, texts), mark_of(text, *texts, *contents))


def _reconcile(entry: ToolEntry, *, sources_known: bool) -> tuple[ToolEntry, list[CatalogFault]]:
    """Set the backend runtime from the source, and report a manifest that differs."""
    manifest = entry.manifest
    if not entry.sources:
        if not sources_known:
            return entry, []
        reason = f"The tool has no usable source in {sources_json.FILE_NAME}; calls of it will fail."
        return entry, [_fault(registry_json.FILE_NAME, f"{manifest.tool_id}.tool_id", reason)]
    actual = entry.sources[0].traits.runtime
    followed = _with_runtime(entry)
    if "backend_runtime" not in manifest.model_fields_set or manifest.backend_runtime is actual:
        return followed, []
    reason = f"It says {manifest.backend_runtime.value!r}, but the source means {actual.value!r}; the source was followed."
    return followed, [_fault(registry_json.FILE_NAME, f"{manifest.tool_id}.backend_runtime", reason)]


def _with_runtime(entry: ToolEntry) -> ToolEntry:
    """The entry with the backend runtime of its source."""
    runtime = {"backend_runtime": entry.sources[0].traits.runtime}
    return entry.model_copy(update={"manifest": entry.manifest.model_copy(update=runtime)})


def _strangers(reading: CatalogReading, known: set[str]) -> Iterable[CatalogFault]:
    for tool_id in sorted(reading.sources.mentioned.keys() - known):
        yield _fault(sources_json.FILE_NAME, f"$.sources.{tool_id}", "There is no tool with this id.")
    for group in reading.groups.entries.values():
        for tool_id in sorted({*group.tool_ids, *group.usage_order} - known):
            yield _fault(groups_json.FILE_NAME, f"$.groups.{group.group_id}.tool_ids", f"There is no tool {tool_id!r}.")
    for container in reading.containers.entries.values():
        if (tool_id := container.tool_id) not in known:
            where = f"$.containers.{container.container_id}.tool_id"
            yield _fault(containers_json.FILE_NAME, where, f"There is no tool {tool_id!r}.")
    for entry in reading.versions.entries.values():
        if (tool_id := entry.manifest.tool_id) not in known:
            yield _fault(versions_json.FILE_NAME, f"$.versions.{tool_id}", "There is no tool with this id.")


def _fault(file: str, field: str, reason: str) -> CatalogFault:
    return CatalogFault(file=file, field=field, reason=reason)
