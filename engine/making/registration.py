"""Registers candidates as versions that can be called, with their evidence."""

from engine.making.evidence import evidence_for
from engine.making.existing_tools import existing_tools
from engine.registry.registry import ToolRegistry
from engine.store.evidence import EvidenceTable
from engine.store.groups import GroupTable
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.task_specs import GithubDeploy, RepairTool, TaskSpec
from toolagent.core.task_requests import subject_of
from toolagent_service.contracts.making_steps import ExistingTool, Registered


class Registration:
    """Idempotent: finds what the task registered before."""

    def __init__(self, registry: ToolRegistry, groups: GroupTable, evidence: EvidenceTable) -> None:
        self._registry, self._groups, self._evidence = registry, groups, evidence

    async def made_already(self, spec: TaskSpec) -> tuple[str, ...]:
        """The active tool of that name; for a repository also the tools of the group, if all are active."""
        name = subject_of(spec)
        if await self._is_active(name):
            return (name,)
        group = await self._groups.get(name) if isinstance(spec, GithubDeploy) else None
        tool_ids = group.tool_ids if group is not None else ()
        return tool_ids if all([await self._is_active(tool_id) for tool_id in tool_ids]) else ()

    async def in_the_way(self, task_id: str, spec: TaskSpec) -> str:
        """Why the task's name is taken, though no tool of that name is active; empty if the name is free.

        Asked before the build. `register` finds later conflicts.
        """
        if isinstance(spec, RepairTool):
            return ""
        name = spec.tool_name
        manifest = await self._registry.get(name)
        if manifest is not None and await self.is_anothers(task_id, name):
            remedy = f"Activate it (POST /tools/{name}/versions/{manifest.version}/activate), delete it (DELETE /tools/{name})"
            return f"There is a tool {name!r} already, and it {_state(manifest)}. {remedy}, or choose another tool_name."
        return await self._group_in_the_way(task_id, name) if isinstance(spec, GithubDeploy) else ""

    async def existing_tools(self, spec: TaskSpec) -> tuple[ExistingTool, ...]:
        """Other tools that may do what is asked, to be tried with the examples; none for a repair."""
        return () if isinstance(spec, RepairTool) else await existing_tools(spec, self._registry)

    async def register(self, candidate: Candidate, evidence: Evidence) -> Registered:
        """Registers all tools and their group, or nothing if one of the ids is taken."""
        made = [(entry, evidence_for(entry, candidate, evidence)) for entry in candidate.entries]
        anothers = await self._registry.register_made(made, candidate.group)
        if anothers is not None:
            kind = "tool" if any(entry.manifest.tool_id == anothers for entry in candidate.entries) else "group"
            return Registered(refused=f"There is a {kind} {anothers!r} already, which this task did not make. Choose another tool_name.")
        return Registered(tool_ids=tuple(entry.manifest.tool_id for entry in candidate.entries))

    async def is_anothers(self, task_id: str, tool_id: str) -> bool:
        """Whether there is a tool of this id from elsewhere than this task."""
        if await self._registry.versions(tool_id) is None:
            return False
        return all(one.task_id != task_id for one in (await self._evidence.of_tool(tool_id)).values())

    async def _group_in_the_way(self, task_id: str, name: str) -> str:
        for group, raw in await self._groups.list_stored():
            if group.group_id != name:
                continue
            states = [f"{tool_id} {_state(await self._registry.get(tool_id))}" for tool_id in group.tool_ids]
            told = f"There is a group {name!r} already, and not all its tools can be called ({'; '.join(states) or 'it has none'})."
            if raw is not None:
                return f"{told} Take it out of the catalog's file of groups, or choose another tool_name."
            if any([await self.is_anothers(task_id, tool_id) for tool_id in group.tool_ids]):
                return f"{told} Activate or delete its tools, or choose another tool_name."
        return ""

    async def _is_active(self, tool_id: str) -> bool:
        manifest = await self._registry.get(tool_id)
        return manifest is not None and manifest.status is ToolStatus.ACTIVE


def _state(manifest: ToolManifest | None) -> str:
    return f"is {manifest.status.value}" if manifest is not None else "is not there"
