"""Exports the catalog as files.

Entries from files come back unchanged, except for later changes.
"""

import asyncio
import json
from collections.abc import Iterable

from pydantic import JsonValue, TypeAdapter

from engine.registry.catalog import BUILTIN_ORIGIN
from engine.registry.formats import FORMATS, tool_json
from engine.registry.formats.state import CatalogState, Document, KeptVersion
from engine.registry.tool_files_import import TOOL_FILES_ORIGIN
from engine.store.catalog_entries import CatalogEntryTable, StoredVersion
from engine.store.catalog_files import CatalogFileTable
from engine.store.containers import ContainerTable
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.mcp_servers import McpServerRows
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ToolSource

_SOURCE: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)


class CatalogExport:
    """Leaves out built-in tools and those of external tables and MCP servers."""

    def __init__(self, database: Database) -> None:
        self._entries = CatalogEntryTable(database)
        self._groups = GroupTable(database)
        self._containers = ContainerTable(database)
        self._files = CatalogFileTable(database)
        self._tools = ToolTable(database)
        self._servers = McpServerRows(database)

    async def documents(self) -> dict[str, Document]:
        """Documents by file name. Raises StoreUnavailableError."""
        stored = await self._entries.list_stored(BUILTIN_ORIGIN)
        of_files = frozenset(await self._tools.list_ids(TOOL_FILES_ORIGIN))
        groups, containers = await self._groups.list_stored(), await self._containers.list_stored()
        files = {one.file_name: await self._files.merged(one.file_name) for one in FORMATS}
        servers = {server.name: server.spec for server in await self._servers.list_all()}
        state = CatalogState(
            versions=await asyncio.to_thread(lambda: tuple(_kept(one) for one in stored if one.tool_id not in of_files)),
            groups=tuple((group, _parsed(raw)) for group, raw in groups if group.group_id not in servers),
            containers=tuple((container, _parsed(raw)) for container, raw in containers),
            servers=tuple(servers.items()),
            files={name: file for name, file in files.items() if file is not None},
        )
        single = [one for one in stored if one.tool_id in of_files]
        return await asyncio.to_thread(lambda: {**_dump(state), **_single_files(single)})


def _dump(state: CatalogState) -> dict[str, Document]:
    dumped = {one.file_name: one.dump(state) for one in FORMATS}
    return {name: document for name, document in dumped.items() if document is not None}


def _single_files(stored: Iterable[StoredVersion]) -> dict[str, Document]:
    """Each version in a file of its own."""
    return {tool_json.file_name_of(kept.entry.manifest): tool_json.dump(kept) for kept in map(_kept, stored)}


def _kept(stored: StoredVersion) -> KeptVersion:
    sources = tuple(_SOURCE.validate_json(text) for text, _ in stored.sources)
    is_active = stored.version == stored.active_version
    return KeptVersion(
        entry=ToolEntry(manifest=ToolManifest.model_validate_json(stored.manifest), sources=sources),
        raw=_parsed(stored.raw),
        source_raws=tuple(_parsed(raw) for _, raw in stored.sources),
        is_active=is_active,
        pinned=not is_active or stored.from_file != stored.version,
    )


def _parsed(raw: str | None) -> JsonValue:
    return json.loads(raw) if raw is not None else None
