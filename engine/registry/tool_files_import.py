"""Imports the `*.tool.json` of some folders into the registry."""

import asyncio
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

from engine.registry.archives import NotPackedError, ProjectArchives
from engine.registry.formats.tool_json import FILE_NAME, manifest_in
from engine.registry.services import method_of
from engine.registry.tool_files import (
    FoundFiles,
    FoundTool,
    ToolFolders,
    Version,
    find_tool_files,
    heads,
    kept,
    without_cycles,
    without_doubles,
)
from engine.store.catalog_entries import CatalogEntry, CatalogEntryTable, mark_of
from engine.store.catalog_files import CatalogFile, CatalogFileTable
from engine.store.database import Database
from engine.store.rows.version_rows import NewVersion
from engine.store.tool_files import ToolFileTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.sources import BuiltinSource, ScriptSource, ToolSource
from toolagent.contracts.tool_files import ExternalScript
from toolagent.core.catalog.dependencies import Node

TOOL_FILES_ORIGIN = "tool-files"
_FILES = "files"


@dataclass(slots=True)
class LoadedToolFiles:
    """The files now, and their versions at the last import, by file name."""

    found: FoundFiles = field(default_factory=FoundFiles)
    before: dict[str, Version] = field(default_factory=dict[str, Version])
    claimed: tuple[Version, ...] = ()
    taken: Mapping[str, str] = field(default_factory=dict[str, str])
    contents: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def staying(self) -> dict[str, Version]:
        return kept(self.found, self.before, self.taken)

    def versions(self) -> dict[str, Version]:
        return {**self.staying, **{tool.name: tool.version for tool in self.found.tools}}

    def gone(self) -> list[tuple[str, str]]:
        now = set(self.versions().values())
        return [_parted(version) for version in self.claimed if version not in now]


class ToolFilesImport:
    """Works in three steps, interleaved with the import of the other catalog files, so that an id may move between kinds of files."""

    def __init__(self, database: Database, archives: ProjectArchives, catalog: str, where: ToolFolders) -> None:
        self._entries = CatalogEntryTable(database)
        self._files = CatalogFileTable(database)
        self._tools = ToolFileTable(database, TOOL_FILES_ORIGIN)
        self._archives = archives
        self._catalog = catalog
        self._where = where

    async def load(self, taken: Mapping[str, str], others: Collection[Node]) -> LoadedToolFiles:
        """Read the files. `taken` maps ids of other tools to their owners. `others` are nodes of those tools."""
        found = await asyncio.to_thread(find_tool_files, self._where, taken)
        row = (await self._files.of_file(FILE_NAME)).get(self._catalog, CatalogFile())
        before = cast("dict[str, str]", row.envelope.get(_FILES, {}))
        loaded = LoadedToolFiles(found, before, row.entry_ids, taken)
        for tool in [*found.tools]:
            await self._pack(loaded, tool)
        without_doubles(found, before, taken)
        without_cycles(found, others)
        return loaded

    async def leave(self, loaded: LoadedToolFiles) -> None:
        """Remove tools that have no file any more."""
        left = {_parted(version)[0] for version in loaded.versions().values()}
        await self._forget(loaded, [one for one in loaded.gone() if one[0] not in left])

    async def enter(self, loaded: LoadedToolFiles) -> list[CatalogFault]:
        """Write changes and remove versions without a file. Returns the faults of the files."""
        found = loaded.found
        foreign = await self._tools.foreign(tool.file.tool_id for tool in found.tools)
        for tool in [*found.tools]:
            if (origin := foreign.get(tool.file.tool_id)) is not None:
                found.refuse(tool, ("toolId",), f"A tool that came from elsewhere ({origin}) has this id.")
        claimed = tuple(dict.fromkeys((*loaded.versions().values(), *loaded.claimed)))
        if set(claimed) != set(loaded.claimed):
            # Claim the versions first, so that another host that lost these files does not remove the tools meanwhile.
            await self._files.save(self._catalog, FILE_NAME, CatalogFile({_FILES: {**loaded.before}}, claimed))
        await self._write(loaded)
        await self._forget(loaded, loaded.gone())
        versions = loaded.versions()
        if versions or claimed:
            await self._files.save(self._catalog, FILE_NAME, CatalogFile({_FILES: {**versions}}, tuple(dict.fromkeys(versions.values()))))
        return found.faults

    async def _pack(self, loaded: LoadedToolFiles, tool: FoundTool) -> None:
        """Pack the folder of a script, so that versions keep their code and every host can run it."""
        handler = tool.file.handler
        if not isinstance(handler, ExternalScript):
            return
        if handler.content is not None:
            loaded.contents[tool.name] = handler.content
            if tool.script:
                self._archives.note(handler.content, tool.script.folder, tool.file.tool_id, tool.script.given)
            if not (await self._archives.has(handler.content) or await self._archives.remake(handler.content)):
                reason = (
                    f"There is no {handler.content} in the content store; calls will fail. Leave it out to take what lies beside this file."
                )
                loaded.found.faults.append(tool.fault(("handler", "content"), reason))
            return
        try:
            script = tool.script
            content = await self._archives.content_of(script.folder, tool.file.tool_id, script.given) if script else None
        except NotPackedError as error:
            cause = "files" if handler.files else "scriptPath"
            loaded.found.refuse(tool, ("handler", cause), f"The folder of the script cannot be kept: {error}")
            return
        if content is None:
            loaded.found.refuse(tool, ("handler", "scriptPath"), "The folder of the script is gone.")
        else:
            loaded.contents[tool.name] = content

    async def _write(self, loaded: LoadedToolFiles) -> None:
        first = heads(loaded.found, [*loaded.staying.values()])
        entries = [(tool, _entry(tool, loaded.contents.get(tool.name))) for tool in loaded.found.tools]
        leading = [entry for tool, entry in entries if first[tool.file.tool_id] == tool.file.version]
        others = [entry for tool, entry in entries if first[tool.file.tool_id] != tool.file.version]
        await self._entries.bring_in(leading, TOOL_FILES_ORIGIN)
        await self._entries.bring_in_versions(others)

    async def _forget(self, loaded: LoadedToolFiles, gone: list[tuple[str, str]]) -> None:
        await self._tools.forget(gone, FILE_NAME, self._catalog, heads(loaded.found, [*loaded.staying.values()]))


def _parted(version: Version) -> tuple[str, str]:
    tool_id, _, number = version.partition("@")
    return tool_id, number


def _entry(tool: FoundTool, content: str | None) -> CatalogEntry:
    entry = ToolEntry(manifest=manifest_in(tool.file), sources=(_source(tool, content),))
    raw = json.dumps(tool.read.value)
    source_raws = tuple(source.model_dump_json() for source in entry.sources)
    return CatalogEntry(NewVersion(entry, raw, source_raws), mark_of(entry.model_dump_json(), raw, *source_raws))


def _source(tool: FoundTool, content: str | None) -> ToolSource:
    handler = tool.file.handler
    if isinstance(handler, ExternalScript):
        path = tool.script.name if tool.script else handler.script_path
        return ScriptSource(script_path=path, language=handler.language, entry_point=handler.entry_point, content=content)
    return BuiltinSource(handler=method_of(handler).handler)
