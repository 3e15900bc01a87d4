"""The steps of a making task on this host, from the request to versions that can be called."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.calls.file_parameters import FileParameters
from engine.disk.leftovers import discard
from engine.making.build_ways import WayBuilder, WaysParts
from engine.making.building.builds import Built
from engine.making.candidates import Candidates
from engine.making.evidence import Accounts
from engine.making.failures import BuildFailed
from engine.making.gate import CHECKS, with_checks
from engine.making.gate.derivation import Derivation
from engine.making.gate.judging import judge
from engine.making.gate.keys import keys_of_others, wants_key
from engine.making.gate.subject import Check, Subject
from engine.making.gate.trial import on_trial
from engine.making.inspection import inspect
from engine.making.mending.diagnosis import Diagnoses
from engine.making.mending.repairs import Mended, NotASuccessor, Repairs
from engine.making.openapi.documents.reading import DocumentReader
from engine.making.openapi.findings import read_documents
from engine.making.registration import Registration
from engine.making.repositories.addresses import CloneFailed
from engine.making.repositories.cloning import Cloner, repository_in
from engine.making.repositories.part_of_task import meant_in
from engine.making.schema_rights import unnamed_files
from engine.making.uv.outages import Outage, is_outage
from engine.making.workbench.bench import Workbenches
from engine.registry.archives import NotPackedError
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.runtime import Progress
from toolagent.contracts.making import Candidate, CheckResult
from toolagent.contracts.task_specs import GithubDeploy, RepairTool, TaskSpec
from toolagent.core.task_requests import subject_of
from toolagent_service.contracts.making_steps import (
    Assessed,
    BuildOutcome,
    BuildStep,
    Diagnosis,
    Inspected,
    Registered,
    RegisterStep,
    TaskStep,
    VerifyStep,
)
from toolagent_service.making.repository_urls import place_of_repository
from toolagent_service.making.withheld import divided

_TOLD = 4_000
_REPOSITORY = "repository"
_SUCCESSION = "takes over"
"""The check of a repair before its trial."""
_FILES = "takes named files"
_KEYS = "has a key of its own"


@dataclass(frozen=True, slots=True)
class MakerParts:
    """`folder` holds the folders of tasks, `cache` is for the derivation of cases."""

    folder: Path
    cache: Path
    runtimes: RuntimeParts
    cloner: Cloner
    ways: WaysParts
    candidates: Candidates
    registration: Registration
    files: FileParameters
    benches: Workbenches
    diagnoses: Diagnoses
    repairs: Repairs
    accounts: Accounts


class Maker:
    """Each step is idempotent: it makes its folders anew, or finds its earlier result. No step asks a model."""

    def __init__(self, parts: MakerParts) -> None:
        self._parts = parts

    def folder_of(self, task_id: str) -> Path:
        """The folder with all files of a task on this host."""
        return self._parts.folder / task_id

    async def inspect(self, step: TaskStep, progress: Progress) -> Inspected:
        """Finds the tool if it exists, tools that may do the same, and what the repository holds."""
        if there := await self._parts.registration.made_already(step.spec):
            return Inspected(answered_by=subject_of(step.spec), tool_ids=there)
        existing = await self._parts.registration.existing_tools(step.spec)
        if in_the_way := await self._parts.registration.in_the_way(step.task_id, step.spec):
            return Inspected(refused=in_the_way, takers=existing)
        if not isinstance(step.spec, GithubDeploy):
            return Inspected(takers=existing)
        place = place_of_repository(step.spec)
        progress(f"cloning {place.url}")
        try:
            clone = await self._parts.cloner.clone(place.url, self.folder_of(step.task_id) / "clone", place.ref)
            meant = await asyncio.to_thread(meant_in, clone.folder, place.path)
        except CloneFailed as failure:
            return Inspected(refused=str(failure), takers=existing)
        progress("looking at what was cloned")
        found = await asyncio.to_thread(lambda: inspect(meant.tree()))
        reader = DocumentReader(self._parts.ways.executor, self.folder_of(step.task_id) / "document")
        found = await read_documents(found, meant.folder, reader)
        return Inspected(inspection=found.model_copy(update={"commit": clone.commit, "dropped": clone.dropped}), takers=existing)

    async def diagnose(self, step: TaskStep, progress: Progress) -> Diagnosis:
        """Collects what is known of the tool that the task repairs."""
        if not isinstance(step.spec, RepairTool):
            return Diagnosis(refused=f"The task is to make {subject_of(step.spec)!r}, not to repair it.")
        return await self._parts.diagnoses.of(step.task_id, step.spec, progress)

    async def lay_out(self, step: TaskStep) -> None:
        """Copies the repository to the workbench: the agent's programs see nothing else of the task's folder."""
        bench = await self._parts.benches.of(step.task_id)
        await bench.bring(_REPOSITORY, await asyncio.to_thread(self._clone_of, step.task_id, step.spec), self._parts.cloner.room)

    async def build(self, step: BuildStep, progress: Progress, *, is_patient: bool = False) -> BuildOutcome:
        """Builds without a model. `is_patient`: an outage of our own services raises Outage; otherwise it is a failure."""
        try:
            built = await self._built(step, progress)
            candidate = built.candidate.model_copy(update={"left_out": built.told, "notes": built.notes})
            file_id = await self._parts.candidates.keep(step.task_id, candidate, built.folders)
            return BuildOutcome(candidate=file_id, left_out=candidate.left_out)
        except (BuildFailed, NotPackedError, ScriptFailure) as failure:
            if is_patient and is_outage(failure):
                raise Outage(str(failure)) from failure
            return BuildOutcome(reason=str(failure), told="" if isinstance(failure, NotPackedError) else failure.told[-_TOLD:])

    async def verify(self, step: VerifyStep, progress: Progress, *, is_patient: bool = False) -> Assessed:
        """Runs the gate. `is_patient`: an outage of our own services raises Outage; otherwise it counts against the candidate."""
        parts = self._parts
        whole = await parts.candidates.load(step.candidate)
        if told := await asyncio.to_thread(unnamed_files, whole.entries):
            return await self._refused(step, whole, _FILES, told)
        if told := await self._of_others(whole):
            return await self._refused(step, whole, _KEYS, told)
        try:
            candidate, checks = await self._for_trial(step, whole)
        except NotASuccessor as refused:
            return await self._refused(step, whole, _SUCCESSION, str(refused))
        given, held_back = divided(step.task_id, step.spec.examples)
        async with on_trial(
            candidate.entries, parts.runtimes, task_id=step.task_id, files=parts.files, progress=progress, is_patient=is_patient
        ) as trial:
            judgement = await judge(
                Subject(
                    candidate.entries,
                    trial,
                    Derivation(parts.cache),
                    given=given,
                    withheld=held_back,
                    written_by_us=candidate.written_by_us,
                    probe=step.spec.probe if isinstance(step.spec, GithubDeploy) else "safe",
                ),
                progress,
                checks,
            )
        narrowed = None
        if without := _left_out(step, candidate, judgement.faulty):
            narrowed = await parts.candidates.narrow(step.task_id, candidate, without)
            candidate = await parts.candidates.load(narrowed)
        evidence = await parts.accounts.evidence(step, candidate, judgement.checks, judgement.behaviour, judgement.seconds)
        return Assessed(evidence=evidence, for_the_maker="" if narrowed else judgement.for_the_maker, candidate=narrowed)

    async def register(self, step: RegisterStep) -> Registered:
        """Registers all tools of the candidate, or none."""
        candidate = await self._parts.candidates.load(step.candidate)
        if isinstance(step.spec, RepairTool) and step.mends is not None:
            mended = Mended(step.spec.tool_id, step.mends, step.mends_content)
            registered = await self._parts.repairs.register(step.task_id, mended, candidate, step.evidence)
        else:
            registered = await self._parts.registration.register(candidate, step.evidence)
        if not registered.refused:
            await self._parts.runtimes.sandboxing.environments.keep(step.task_id)
        return registered

    async def clear(self, step: TaskStep) -> None:
        """Stops and removes everything of the task. Registered versions hold their files themselves."""
        await self._parts.benches.remove(step.task_id)
        await self._parts.candidates.forget(step.task_id)
        await self._parts.runtimes.sandboxing.environments.drop(step.task_id)
        await asyncio.to_thread(discard, self.folder_of(step.task_id))

    async def _refused(self, step: VerifyStep, candidate: Candidate, check: str, told: str) -> Assessed:
        """The assessment of a candidate that is refused before its trial."""
        refusal = CheckResult(check=check, passed=False, details=told)
        return Assessed(evidence=await self._parts.accounts.evidence(step, candidate, (refusal,)), for_the_maker=told)

    async def _of_others(self, candidate: Candidate) -> str:
        """Tells which key the candidate would send to a server that it was not set for, and what to do."""
        if not wants_key(candidate.entries):
            return ""
        there = await self._parts.repairs.registry.list_entries()
        return await asyncio.to_thread(keys_of_others, candidate.entries, there)

    async def _for_trial(self, step: VerifyStep, candidate: Candidate) -> tuple[Candidate, tuple[Check, ...]]:
        """The candidate for the trial, and its checks. Raises NotASuccessor."""
        if not isinstance(step.spec, RepairTool) or step.mends is None:
            return candidate, CHECKS
        entry = await self._parts.repairs.successor(step.task_id, step.spec.tool_id, step.mends, candidate)
        # Only the mended source, because others would answer in its place.
        own = entry.model_copy(update={"sources": entry.sources[:1]})
        # The first author is not known, and a repair need not add what others' tools may lack.
        mended = candidate.model_copy(update={"entries": (own,), "written_by_us": False})
        replay = await self._parts.repairs.replay(step.spec, step.mends)
        poison = await self._parts.repairs.poison(step.spec, step.mends)
        return mended, with_checks(first=poison, before_withheld=replay)

    async def _built(self, step: BuildStep, progress: Progress) -> Built:
        repository = await asyncio.to_thread(self._clone_of, step.task_id, step.spec)
        return await WayBuilder(self._parts.ways, self._parts.runtimes, self.folder_of(step.task_id), repository).build(step, progress)

    def _clone_of(self, task_id: str, spec: TaskSpec) -> Path:
        """The folder in the clone that the task means. Blocks."""
        path = place_of_repository(spec).path if isinstance(spec, GithubDeploy) else ""
        return meant_in(repository_in(self.folder_of(task_id) / "clone"), path).folder


def _left_out(step: VerifyStep, candidate: Candidate, faulty: Mapping[str, str]) -> Mapping[str, str]:
    """Faulty operations to leave out: not of tools that we wrote, not if the task names operations, and not all of them."""
    if candidate.written_by_us or not isinstance(step.spec, GithubDeploy) or step.spec.operations:
        return {}
    return faulty if len(faulty) < len(candidate.entries) else {}
