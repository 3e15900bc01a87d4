"""Candidates become versions that can be called, with the evidence that they may be."""

from engine.making.evidence import evidence_for
from engine.making.takers import takers_of
from engine.registry.registry import ToolRegistry
from engine.store.evidence import EvidenceTable
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.making_steps import Registered, Taker
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.task_specs import RepairTool, TaskSpec

__all__ = ["Registration"]


class Registration:
    """May be repeated: what this task has registered before is found."""

    def __init__(self, registry: ToolRegistry, evidence: EvidenceTable) -> None:
        self._registry, self._evidence = registry, evidence

    async def active(self, tool_id: str) -> str | None:
        """The id, if there is a tool of it that can be called."""
        manifest = await self._registry.get(tool_id)
        return tool_id if manifest is not None and manifest.status is ToolStatus.ACTIVE else None

    async def takers(self, spec: TaskSpec) -> tuple[Taker, ...]:
        """Tools of other ids that may do it, to be tried with the examples; a repair is of the tool that it names."""
        return () if isinstance(spec, RepairTool) else await takers_of(spec, self._registry)

    async def register(self, candidate: Candidate, evidence: Evidence) -> Registered:
        """All of its tools and their group, or nothing when one of the ids is another tool's."""
        made = [(entry, evidence_for(entry, candidate, evidence)) for entry in candidate.entries]
        anothers = await self._registry.register_made(made, candidate.group)
        if anothers is not None:
            return Registered(refused=f"There is a tool {anothers!r} already, which this task did not make. Choose another tool_name.")
        return Registered(tool_ids=tuple(entry.manifest.tool_id for entry in candidate.entries))

    async def is_anothers(self, task_id: str, tool_id: str) -> bool:
        """Whether there is a tool of this id that the task did not make."""
        if await self._registry.versions(tool_id) is None:
            return False
        return all(one.task_id != task_id for one in (await self._evidence.of_tool(tool_id)).values())
