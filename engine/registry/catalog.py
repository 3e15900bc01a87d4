"""Bringing the catalog, files and built-in tools, into the registry; what cannot be used is reported and stops nothing else."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from engine.registry.formats import groups_json, registry_json, sources_json
from engine.registry.formats.document import Parsed
from engine.registry.registry import ToolRegistry
from engine.store.faults import FaultTable
from engine.store.groups import GroupTable
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolGroup, ToolManifest
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.sources import ToolSource, backend_runtime_of

__all__ = ["CatalogImport"]

T = TypeVar("T")
_FILES_ORIGIN = "catalog"
_BUILTIN_ORIGIN = "builtin"


class CatalogImport:
    """Reads `registry.json`, `sources.json` and `groups.json` of the data folder.

    A missing `registry.json` is a fault and everything stays as it was; beside it, a missing file is an empty one.
    """

    def __init__(self, registry: ToolRegistry, tools: ToolTable, groups: GroupTable, faults: FaultTable) -> None:
        self._registry = registry
        self._tools = tools
        self._groups = groups
        self._faults = faults

    async def run(self, data_dir: Path, builtins: Iterable[ToolEntry]) -> tuple[CatalogFault, ...]:
        """Import everything. Entries that are faulty now keep the state they had. Returns what was wrong."""
        builtin = {entry.manifest.tool_id: entry for entry in builtins}
        for entry in builtin.values():
            await self._put(entry, _BUILTIN_ORIGIN)
        # Whoever names the wrong folder does not mean to remove all tools and groups.
        has_catalog = _is_there(data_dir / registry_json.FILE_NAME)
        tools = registry_json.parse(data_dir / registry_json.FILE_NAME) if has_catalog else _no_catalog(data_dir)
        sources = _read(data_dir / sources_json.FILE_NAME, sources_json.parse, Parsed[tuple[ToolSource, ...]](readable=has_catalog))
        groups = _read(data_dir / groups_json.FILE_NAME, groups_json.parse, Parsed[ToolGroup](readable=has_catalog))
        faults = [*tools.faults, *sources.faults, *groups.faults]
        for manifest in tools.entries.values():
            if manifest.tool_id in builtin:
                faults.append(_fault(registry_json.FILE_NAME, manifest, "tool_id", "A built-in tool has this id."))
                continue
            entry = ToolEntry(manifest=manifest, sources=sources.entries.get(manifest.tool_id, ()))
            entry, remarks = _reconcile(entry, sources)
            faults.extend(remarks)
            await self._put(entry, _FILES_ORIGIN)
        if tools.readable:
            await self._forget_missing(tools.mentioned)
        known = {*builtin, *tools.mentioned, *await self._registry.list_ids()}
        faults.extend(_strangers(sources, groups, known))
        if groups.readable:
            await self._groups.replace(groups.entries.values())
        await self._faults.replace(faults)
        return tuple(faults)

    async def _put(self, entry: ToolEntry, origin: str) -> None:
        """A tool that was removed on purpose stays away until its catalog entry has another version."""
        manifest = entry.manifest
        if await self._tools.removed_version(manifest.tool_id) == manifest.version:
            return
        if await self._tools.get(manifest.tool_id) != entry:
            await self._registry.register(manifest, entry.sources, origin)

    async def _forget_missing(self, mentioned: set[str]) -> None:
        for tool_id in await self._tools.list_ids(_FILES_ORIGIN):
            if tool_id not in mentioned:
                await self._tools.erase(tool_id)


def _read(path: Path, parse: Callable[[Path], Parsed[T]], empty: Parsed[T]) -> Parsed[T]:
    return parse(path) if _is_there(path) else empty


def _is_there(path: Path) -> bool:
    """Also when it may not be looked at: then reading says why."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _no_catalog(data_dir: Path) -> Parsed[ToolManifest]:
    missing = "This file is" if data_dir.is_dir() else "The data folder is"
    reason = f"{missing} not there: {str(data_dir.absolute())!r}. Set TOOL_AGENT_DATA_DIR; the tools known so far stay."
    return Parsed(faults=[CatalogFault(file=registry_json.FILE_NAME, field="$", reason=reason)], readable=False)


def _reconcile(entry: ToolEntry, sources: Parsed[tuple[ToolSource, ...]]) -> tuple[ToolEntry, list[CatalogFault]]:
    """The source says what the backend runtime is; a manifest that says otherwise is reported."""
    manifest = entry.manifest
    if not entry.sources:
        if not sources.readable:
            return entry, []
        reason = f"The tool has no usable source in {sources_json.FILE_NAME}; calls of it will fail."
        return entry, [_fault(registry_json.FILE_NAME, manifest, "tool_id", reason)]
    actual = backend_runtime_of(entry.sources[0])
    if "backend_runtime" not in manifest.model_fields_set or manifest.backend_runtime is actual:
        return entry.model_copy(update={"manifest": manifest.model_copy(update={"backend_runtime": actual})}), []
    reason = f"It says {manifest.backend_runtime.value!r}, but the source means {actual.value!r}; the source was followed."
    corrected = manifest.model_copy(update={"backend_runtime": actual})
    return entry.model_copy(update={"manifest": corrected}), [_fault(registry_json.FILE_NAME, manifest, "backend_runtime", reason)]


def _strangers(sources: Parsed[tuple[ToolSource, ...]], groups: Parsed[ToolGroup], known: set[str]) -> Iterable[CatalogFault]:
    for tool_id in sources.mentioned - known:
        yield CatalogFault(file=sources_json.FILE_NAME, field=f"$.sources.{tool_id}", reason="There is no tool with this id.")
    for group in groups.entries.values():
        for tool_id in sorted({*group.tool_ids, *group.usage_order} - known):
            yield CatalogFault(
                file=groups_json.FILE_NAME, field=f"$.groups.{group.group_id}.tool_ids", reason=f"There is no tool {tool_id!r}."
            )


def _fault(file: str, manifest: ToolManifest, field: str, reason: str) -> CatalogFault:
    return CatalogFault(file=file, field=f"{manifest.tool_id}.{field}", reason=reason)
