"""The tool registry: which tools exist."""

from collections.abc import Mapping, Sequence

from engine.store.routes import RouteTable
from engine.store.tools import ToolTable
from engine.validation.references import written_out
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Evidence
from toolagent.contracts.manifest import ToolGroup, ToolManifest, ToolStatus
from toolagent.contracts.sources import ToolSource
from toolagent.contracts.versions import ToolVersion, ToolVersions
from toolagent.validation.versions import NoSuchVersion, NotARangeError, best_of, is_exact, newest_first

RUNTIME_ORIGIN = "registered"


class ToolRegistry:
    """Reads and writes tool versions. Without a version, methods mean the active one.

    `aliases` are other ids by which calls find a tool (`find`). No list has them.
    """

    def __init__(self, tools: ToolTable, routes: RouteTable, aliases: Mapping[str, str] | None = None) -> None:
        self._tools = tools
        self._routes = routes
        self._aliases = aliases or {}

    async def get(self, tool_id: str, version: str | None = None) -> ToolManifest | None:
        entry = await self._tools.get(tool_id, version)
        return entry.manifest if entry else None

    async def entry(self, tool_id: str, version: str | None = None) -> ToolEntry | None:
        """The manifest with its sources; for a range, of the highest callable version. None also for an invalid range."""
        if version is None or is_exact(version):
            return await self._tools.get(tool_id, version)
        try:
            found = await self.find(tool_id, version)
        except NotARangeError:
            return None
        return found if isinstance(found, ToolEntry) else None

    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        """The active version, an exact one, or the highest callable one in a range; None if there is no such tool.

        Raises NotARangeError.
        """
        found = await self._find(tool_id, wanted)
        alias = self._aliases.get(tool_id) if found is None else None
        return await self._find(alias, wanted) if alias else found

    async def called(self, tool_id: str) -> ToolEntry | None:
        """The active version of the tool that a call of this id finds."""
        found = await self.find(tool_id, None)
        return found if isinstance(found, ToolEntry) else None

    async def _find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        if wanted is None or is_exact(wanted):
            entry = await self._tools.get(tool_id, wanted)
            return entry if entry or wanted is None else _no_such_version(await self._tools.versions(tool_id))
        versions = await self._tools.versions(tool_id)
        best = best_of(wanted, [one.version for one in versions if one.status is ToolStatus.ACTIVE])
        entry = await self._tools.get(tool_id, best) if best else None
        return entry or _no_such_version(versions)

    async def versions(self, tool_id: str) -> ToolVersions | None:
        """All versions of a tool, the newest first; None if there is no such tool."""
        found = {one.version: one for one in await self._tools.versions(tool_id)}
        active = next((one.version for one in found.values() if one.is_active), None)
        if active is None:
            return None
        return ToolVersions(tool_id=tool_id, active_version=active, versions=tuple(found[version] for version in newest_first(found)))

    async def activate(self, tool_id: str, version: str) -> bool:
        """Make a version active; False if it does not exist. Running calls keep their version."""
        return await self._tools.activate(tool_id, version)

    async def roll_back(self, tool_id: str, leaving: str | None = None) -> str | None:
        """Deactivate the active version and return to the previous one; None if there is none.

        With `leaving`, nothing happens unless that version is active. Returns the active version.
        """
        return await self._tools.roll_back(tool_id, leaving)

    async def before_active(self, tool_id: str) -> str | None:
        """The version that a rollback would activate; None if there is none."""
        return await self._tools.before_active(tool_id)

    async def deactivate(self, tool_id: str, version: str) -> bool:
        """Make a version not callable until it is activated; False if it does not exist."""
        return await self._tools.deactivate(tool_id, version)

    async def counts(self) -> tuple[int, int]:
        """The number of tools, and of callable tools."""
        return await self._tools.counts()

    async def list_entries(self) -> tuple[ToolEntry, ...]:
        return await self._tools.list_active_versions()

    async def list_versions(self) -> tuple[ToolEntry, ...]:
        """Every version of every tool."""
        return await self._tools.list_versions()

    async def list_ids(self) -> tuple[str, ...]:
        return await self._tools.list_ids()

    async def resembling(self, words: Sequence[str]) -> tuple[ToolEntry, ...]:
        """Tools with at least one of these lower-case words in id, name, tags, category or description. Best first."""
        entries = await self._tools.list_active_versions()
        ranked = [(-score, entry.manifest.tool_id, entry) for entry in entries if (score := sum(_scores(entry.manifest, words)))]
        return tuple(entry for *_, entry in sorted(ranked, key=lambda found: found[:2]))

    async def register(self, tool: ToolManifest, sources: tuple[ToolSource, ...] = (), origin: str = RUNTIME_ORIGIN) -> ToolManifest:
        """Write a version and activate it. The backend runtime follows from the source. Returns the written manifest.

        Raises SchemaNotFollowedError (a ValueError) if a schema hides a file path or a secret where it cannot be followed.
        """
        entry = _as_registered(ToolEntry(manifest=tool, sources=sources))
        await self._tools.put(entry, origin)
        return entry.manifest

    async def register_made(
        self, made: Sequence[tuple[ToolEntry, Evidence]], group: ToolGroup | None = None, mends: str | None = None
    ) -> str | None:
        """`register` what a task made, all or nothing: see `ToolTable.put_made`. Raises as `register`."""
        return await self._tools.put_made([(_as_registered(entry), evidence) for entry, evidence in made], group, mends)

    async def destroy(self, tool_id: str) -> dict[str, int]:
        """Remove a tool, its sources and its routes. Returns the number of each."""
        versions, sources = await self._tools.remove(tool_id)
        return {"versions": versions, "sources": sources, "routes": await self._routes.remove(tool_id)}


def _as_registered(entry: ToolEntry) -> ToolEntry:
    tool = entry.manifest
    changes: dict[str, object] = {"input_schema": written_out(tool.input_schema), "output_schema": written_out(tool.output_schema)}
    if entry.sources:
        changes["backend_runtime"] = entry.sources[0].traits.runtime
    return entry.model_copy(update={"manifest": tool.model_copy(update=changes)})


def _no_such_version(versions: tuple[ToolVersion, ...]) -> NoSuchVersion | None:
    if not versions:
        return None
    callable_ones = newest_first(one.version for one in versions if one.status is ToolStatus.ACTIVE)
    active = next((one.version for one in versions if one.is_active), "")
    return NoSuchVersion(newest_first(one.version for one in versions), callable_ones, active)


def _scores(manifest: ToolManifest, words: Sequence[str]) -> list[int]:
    """A score per word, by the place where it occurs: the id counts most, the description least; 0: nowhere."""
    places = (
        (8, manifest.tool_id),
        (4, manifest.name),
        (2, " ".join((*manifest.tags, manifest.category))),
        (1, manifest.description),
    )
    return [max((weight for weight, text in places if word in text.lower()), default=0) for word in words]
