"""Writes the evidence of a version: its origin, its cost and the results of the gate."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from engine.runtimes.environments.dependencies import Dependencies, Script, dependencies_of, locked_dependencies
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.environments.paths import find_script
from engine.store.model_turns import ModelTurnTable
from engine.store.tasks import TaskTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate, CheckResult, Evidence
from toolagent.contracts.sources import ToolSource
from toolagent_service.contracts.making_steps import VerifyStep


@dataclass(frozen=True, slots=True)
class Accounts:
    """Reads what was recorded of a task while it ran."""

    tasks: TaskTable
    turns: ModelTurnTable

    async def evidence(
        self,
        step: VerifyStep,
        candidate: Candidate,
        checks: Sequence[CheckResult],
        behaviour: Literal["verified", "unverified"] = "unverified",
        seconds: float = 0.0,
    ) -> Evidence:
        """The evidence of the whole candidate, now; `evidence_for` gives that of each tool."""
        at = datetime.now(UTC)
        spent, origins = await self.turns.spent(step.task_id), await self.turns.origins(step.task_id)
        evidence = Evidence(
            task_id=step.task_id,
            at=at,
            commit=step.commit or "",
            # Several only if the settings changed meanwhile.
            provider=_joined(one.provider for one in origins.asked),
            model=_joined(one.model for one in origins.asked),
            answered_by=origins.answered,
            prompts=tuple(dict.fromkeys(one.prompt for one in origins.asked)),
            behaviour=behaviour,
            checks=tuple(checks),
            left_out=candidate.left_out,
            notes=candidate.notes,
            rounds=step.round,
            turns=spent.turns,
            tokens=spent.tokens,
            cost_usd=spent.cost_usd,
            lost_turns=spent.lost,
            unpriced_turns=spent.unpriced,
            seconds=seconds,
            total_seconds=await self._seconds(step.task_id, at),
        )
        return evidence_for(candidate.entries[0], candidate, evidence)

    async def _seconds(self, task_id: str, until: datetime) -> float:
        task = await self.tasks.get(task_id)
        return (until - task.started_at).total_seconds() if task is not None and task.started_at is not None else 0.0


def evidence_for(entry: ToolEntry, candidate: Candidate, evidence: Evidence) -> Evidence:
    """The evidence with the files and the lock of this tool."""
    archives = (source.archive for source in entry.sources if source.archive is not None)
    return evidence.model_copy(update={"source": next(archives, None), "lock": candidate.locks.get(entry.manifest.tool_id)})


def lock_of(folder: Path, source: ToolSource) -> str | None:
    """The SHA-256 of the lock of the program in the folder; None without a lock. Blocks."""
    try:
        found = _dependencies(folder, source)
    except ScriptFailure:
        return None  # starting it reports what is wrong
    return hashlib.sha256(found.lock).hexdigest() if found and found.lock is not None else None


def _dependencies(folder: Path, source: ToolSource) -> Dependencies | None:
    if source.main is not None and (source.project is None or (folder / source.main[0]).is_file()):
        path, language = source.main
        script = Script(folder / path, path) if source.project is not None else find_script(folder, path)
        return dependencies_of(script, language)
    return locked_dependencies(folder) if source.project is not None else None


def _joined(names: Iterable[str]) -> str | None:
    return ", ".join(dict.fromkeys(names)) or None
