"""Makes a repaired version from the agent's candidate: only what a repair may change, under a new version."""

import asyncio
from dataclasses import dataclass

from engine.making.evidence import evidence_for
from engine.making.gate.subject import Check
from engine.making.mending.poison import poison_of
from engine.making.mending.replay import ReplayLimits, recorded_calls
from engine.making.schema_rights import more_files, unmasked
from engine.registry.registry import ToolRegistry
from engine.store.calls import CallTable
from engine.store.evidence import EvidenceTable
from engine.store.quarantine import QuarantineTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.sources import ToolSource
from toolagent.contracts.task_specs import RepairTool
from toolagent.validation.tool_rules import faults_of_test_mode
from toolagent.validation.versions import next_patch
from toolagent_service.contracts.making_steps import Registered
from toolagent_service.making.mendable import content_of

_FAULTS_TOLD = 5
_TRIES = 5
"""Attempts to get a free version, because several repairs of a tool may end at the same moment."""


class NotASuccessor(ValueError):
    """The candidate cannot replace the version; the message is for its maker."""


@dataclass(frozen=True, slots=True)
class Mended:
    """The version that is repaired. `content` is the archive of its files, if known."""

    tool_id: str
    version: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Repairs:
    """Every step is idempotent: the version that the task registered is found by its evidence."""

    registry: ToolRegistry
    calls: CallTable
    evidence: EvidenceTable
    quarantine: QuarantineTable

    async def successor(self, task_id: str, tool_id: str, mends: str, candidate: Candidate) -> ToolEntry:
        """Raises NotASuccessor."""
        return await asyncio.to_thread(successor, await self._present(tool_id, mends), candidate, await self._version(task_id, tool_id))

    async def replay(self, task: RepairTool, mends: str) -> Check:
        """The check that compares the candidate with earlier answers of the tool."""
        present, versions = (await self._present(task.tool_id, mends)).manifest, await self.registry.versions(task.tool_id)
        if versions is None:
            raise NotASuccessor(f"{task.tool_id!r} has no version {mends} any more: it was removed.")
        limits, major = ReplayLimits(), mends.partition(".")[0]
        # A version that was deactivated gave unwanted answers.
        trusted = [one.version for one in versions.versions if one.version == mends or one.status is ToolStatus.ACTIVE]
        records = await self.calls.latest_good(task.tool_id, limits.looked_at)
        counted = [one for one in trusted if one.partition(".")[0] == major]
        return await asyncio.to_thread(recorded_calls, present, records, counted, task.examples, limits)

    async def poison(self, task: RepairTool, mends: str) -> Check:
        """The check with inputs that ended the process of the present version."""
        present = (await self._present(task.tool_id, mends)).manifest
        return await asyncio.to_thread(poison_of, present, await self.quarantine.of_tool(task.tool_id, mends), task.examples)

    async def register(self, task_id: str, mended: Mended, candidate: Candidate, evidence: Evidence) -> Registered:
        """Registers the candidate as the active version. Running calls keep their version, and the old one stays."""
        tool_id = mended.tool_id
        for _ in range(_TRIES):
            try:
                await self._require_same(task_id, mended)
                entry = await self.successor(task_id, tool_id, mended.version, candidate)
            except NotASuccessor as refused:
                return Registered(refused=str(refused))
            if await self.registry.register_made([(entry, evidence_for(entry, candidate, evidence))], mends=mended.version) is None:
                return Registered(tool_ids=(tool_id,))
        return Registered(refused=f"Others register versions of {tool_id!r} all the time. Repair it again when they are done.")

    async def _require_same(self, task_id: str, mended: Mended) -> None:
        """Raises NotASuccessor if the active version changed meanwhile."""
        tool_id, version = mended.tool_id, mended.version
        active = await self.registry.entry(tool_id)
        if active is None:
            raise NotASuccessor(f"The tool {tool_id!r} was removed meanwhile, so nothing takes over from it.")
        now = active.manifest.version
        if now != version:
            evidence = await self.evidence.get(tool_id, now)
            if evidence is None or evidence.task_id != task_id:
                raise NotASuccessor(
                    f"Meanwhile {tool_id!r} has another active version, {now}; what was mended is {version}. Repair it again."
                )
        elif mended.content not in {None, content_of(active)}:
            # Manual changes in its folder would be lost.
            raise NotASuccessor(f"Meanwhile the files of {tool_id!r}, version {version}, were changed. If it still fails, repair it again.")

    async def _present(self, tool_id: str, version: str) -> ToolEntry:
        if entry := await self.registry.entry(tool_id, version):
            return entry
        raise NotASuccessor(f"{tool_id!r} has no version {version} any more: it was removed.")

    async def _version(self, task_id: str, tool_id: str) -> str:
        """The task's own version, else one above all others, also above those that are about to be registered."""
        taken, there = await self.evidence.of_tool(tool_id), await self.registry.versions(tool_id)
        own = [version for version, evidence in taken.items() if evidence.task_id == task_id]
        return own[0] if own else next_patch((*taken, *(one.version for one in there.versions)) if there else taken)


def successor(present: ToolEntry, candidate: Candidate, version: str) -> ToolEntry:
    """The present version with the candidate's files, schemas and description. Raises NotASuccessor.

    It may not reach more than the present version, because logs and calls may have misled the agent.
    """
    before, ids = present.manifest, [entry.manifest.tool_id for entry in candidate.entries]
    if ids != [before.tool_id]:
        raise NotASuccessor(f"A repair submits {before.tool_id!r} and nothing else; {', '.join(ids)} was submitted.")
    made = candidate.entries[0]
    now = made.manifest
    _require_no_more(before, now)
    _require_same_secrets(before, now)
    changes: dict[str, object] = {
        "version": version,
        "status": ToolStatus.ACTIVE,
        "description": now.description,
        # A schema that is left out stays.
        "input_schema": now.input_schema or before.input_schema,
        "output_schema": now.output_schema or before.output_schema,
    }
    sources = (_source(present.sources[0], made.sources[0]), *present.sources[1:])
    manifest = before.model_copy(update=changes)
    _require_test_mode(manifest)
    return ToolEntry(manifest=manifest, sources=sources)


def _rights(manifest: ToolManifest) -> set[str]:
    return {*manifest.security_context.network_access.allow_hosts, *manifest.security_context.environment}


def _require_no_more(before: ToolManifest, now: ToolManifest) -> None:
    if more := _rights(now) - _rights(before):
        raise NotASuccessor(
            f"A repaired tool may reach no more hosts and variables than before, and this asks for {', '.join(sorted(more))}. "
            "Mend it without them; if that cannot be, say so and stop, since a person has to allow it."
        )


def _require_same_secrets(before: ToolManifest, now: ToolManifest) -> None:
    """Records mask what a schema marks as secret; calls hand over what it marks as a file. A schema that is left out stays."""
    if now.input_schema and (files := more_files(before.input_schema, now.input_schema)):
        raise NotASuccessor(
            f"A repaired tool may be handed no more files than before: {', '.join(files)} of input_schema has the format file-path and had "
            "it not. Mend it without that; if that cannot be, say so and stop, since a person has to allow it."
        )
    for name, old, new in (
        ("input_schema", before.input_schema, now.input_schema),
        ("output_schema", before.output_schema, now.output_schema),
    ):
        if new and (places := unmasked(old, new)):
            raise NotASuccessor(
                f"What was kept out of records has to stay out: {', '.join(places)} of {name} was marked writeOnly or with the format "
                "password, and is not any more. Keep the mark."
            )


def _require_test_mode(manifest: ToolManifest) -> None:
    """The declared test mode stays, because it makes calls harmless."""
    if faults := faults_of_test_mode(manifest):
        told = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:_FAULTS_TOLD])
        raise NotASuccessor(f"input_schema has to allow the test mode of the tool, which stays: {told} Keep these parameters.")


def _source(before: ToolSource, now: ToolSource) -> ToolSource:
    if type(before) is not type(now) or not before.mended:
        raise NotASuccessor(f"The tool has the runtime {before.type!r}, and the submitted tool has {now.type!r}. Keep the runtime.")
    return before.model_copy(update={name: getattr(now, name) for name in before.mended})
