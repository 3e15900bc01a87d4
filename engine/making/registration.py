"""Candidates become versions that can be called, with the evidence that they may be."""

from engine.registry.registry import ToolRegistry
from engine.store.evidence import EvidenceTable
from engine.store.groups import GroupTable
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.making_steps import Registered
from toolagent.contracts.manifest import ToolStatus

__all__ = ["Registration"]


class Registration:
    """May be repeated: what this task has registered before is found."""

    def __init__(self, registry: ToolRegistry, groups: GroupTable, evidence: EvidenceTable) -> None:
        self._registry, self._groups, self._evidence = registry, groups, evidence

    async def active(self, tool_id: str) -> str | None:
        """The id, if there is a tool of it that can be called."""
        manifest = await self._registry.get(tool_id)
        return tool_id if manifest is not None and manifest.status is ToolStatus.ACTIVE else None

    async def register(self, task_id: str, candidate: Candidate, evidence: Evidence) -> Registered:
        """All of its tools and their group, or nothing when one of the ids is another tool's."""
        for entry in candidate.entries:
            if await self.is_anothers(task_id, entry.manifest.tool_id):
                refused = f"There is a tool {entry.manifest.tool_id!r} already, which this task did not make. Choose another tool_name."
                return Registered(refused=refused)
        for entry in candidate.entries:
            manifest = entry.manifest
            # First the reason, then the version: one that can be called has its evidence.
            await self._evidence.put(manifest.tool_id, manifest.version, evidence)
            await self._registry.register(manifest, entry.sources, origin=f"task:{task_id}")
        if candidate.group is not None:
            await self._groups.put(candidate.group)
        return Registered(tool_ids=tuple(entry.manifest.tool_id for entry in candidate.entries))

    async def is_anothers(self, task_id: str, tool_id: str) -> bool:
        """Whether there is a tool of this id that the task did not make."""
        if await self._registry.versions(tool_id) is None:
            return False
        return all(one.task_id != task_id for one in (await self._evidence.of_tool(tool_id)).values())
