"""Candidates become versions that can be called, with the evidence that they may be."""

from engine.making.evidence import evidence_for
from engine.making.takers import takers_of
from engine.registry.registry import ToolRegistry
from engine.store.evidence import EvidenceTable
from engine.store.groups import GroupTable
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.making_steps import Registered, Taker
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.task_specs import GithubDeploy, RepairTool, TaskSpec
from toolagent.core.task_requests import subject_of

__all__ = ["Registration"]


class Registration:
    """May be repeated: what this task has registered before is found."""

    def __init__(self, registry: ToolRegistry, groups: GroupTable, evidence: EvidenceTable) -> None:
        self._registry, self._groups, self._evidence = registry, groups, evidence

    async def made_already(self, spec: TaskSpec) -> tuple[str, ...]:
        """The tool of that name, if it can be called; of a repository also those of the group, if all of them can."""
        name = subject_of(spec)
        if await self._is_active(name):
            return (name,)
        group = await self._groups.get(name) if isinstance(spec, GithubDeploy) else None
        tool_ids = group.tool_ids if group is not None else ()
        return tool_ids if all([await self._is_active(tool_id) for tool_id in tool_ids]) else ()

    async def takers(self, spec: TaskSpec) -> tuple[Taker, ...]:
        """Tools of other ids that may do it, to be tried with the examples; a repair is of the tool that it names."""
        return () if isinstance(spec, RepairTool) else await takers_of(spec, self._registry)

    async def register(self, candidate: Candidate, evidence: Evidence) -> Registered:
        """All of its tools and their group, or nothing when one of the ids is another tool's."""
        made = [(entry, evidence_for(entry, candidate, evidence)) for entry in candidate.entries]
        anothers = await self._registry.register_made(made, candidate.group)
        if anothers is not None:
            kind = "tool" if any(entry.manifest.tool_id == anothers for entry in candidate.entries) else "group"
            return Registered(refused=f"There is a {kind} {anothers!r} already, which this task did not make. Choose another tool_name.")
        return Registered(tool_ids=tuple(entry.manifest.tool_id for entry in candidate.entries))

    async def is_anothers(self, task_id: str, tool_id: str) -> bool:
        """Whether there is a tool of this id that the task did not make."""
        if await self._registry.versions(tool_id) is None:
            return False
        return all(one.task_id != task_id for one in (await self._evidence.of_tool(tool_id)).values())

    async def _is_active(self, tool_id: str) -> bool:
        manifest = await self._registry.get(tool_id)
        return manifest is not None and manifest.status is ToolStatus.ACTIVE
