"""Locks what scripts depend on that do not say it: the well-known packages that they import."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from engine.making.building.builds import Built
from engine.making.dependencies.gate import DependencyGate
from engine.making.python_sources.imports import imported_by
from engine.making.python_sources.wanted import Wanted
from engine.making.repositories.packaging import pack_repository
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import ProjectLocks
from engine.runtimes.environments.dependencies import Kind, Script, dependencies_of
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import ScriptLanguage, ScriptSource
from toolagent_service.contracts.dependency_policy import DependencyVerdict, RefusalKind

_LOCK = "requirements.lock"


class ImportedPackages:
    """The gate judges them as it does what a model asks for. `work` is a folder of the task."""

    def __init__(self, gate: DependencyGate, locks: ProjectLocks, work: Path) -> None:
        self._gate, self._locks, self._work = gate, locks, work

    async def declared(self, built: Built) -> Built:
        """With a lock in the folder of each Python script that says nothing of what it depends on.

        Raises LockFailed, ScriptFailure, ValueError, OSError.
        """
        folders, notes = dict(built.folders), list(built.notes)
        for tool_id, file in (await asyncio.to_thread(_undeclared, built.candidate.entries, folders)).items():
            lock, told = await self.lock_of(folders[tool_id], [file])
            notes += [note for note in told if note not in notes]
            if lock:
                folder = self._work / "declared" / tool_id.replace(":", "_")
                await asyncio.to_thread(pack_repository, folders[tool_id], folder)
                await asyncio.to_thread((folder / _LOCK).write_text, lock)
                folders[tool_id] = folder
        return Built(built.candidate, folders, built.left_out, tuple(notes))

    async def lock_of(self, folder: Path, files: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """The text of a `requirements.lock` of what these files import, empty where that is nothing; and what is to be said of it.

        Raises LockFailed, ScriptFailure (`UnavailableError`).
        """
        tree = await asyncio.to_thread(Tree.read, folder)
        names = {name for file in files for name in await asyncio.to_thread(imported_by, tree, PurePosixPath(file))}
        packages, unknown = self._gate.packages_of_imports(names)
        verdicts = await self._gate.judge(packages)
        _require_index(verdicts)
        taken = [verdict for verdict in verdicts if verdict.refusal is None]
        not_after = min((verdict.not_after for verdict in taken if verdict.not_after is not None), default=None)
        lines = tuple(verdict.requirement for verdict in taken)
        lock = await self._locks.lock(Wanted(lines), (), self._work / "locking", not_after)
        return lock, tuple(_notes(lines, verdicts, unknown))


def _require_index(verdicts: Sequence[DependencyVerdict]) -> None:
    """That the index does not answer says nothing of a package."""
    for verdict in verdicts:
        if verdict.refusal is not None and verdict.refusal.kind is RefusalKind.INDEX_UNAVAILABLE:
            raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, verdict.refusal.message)


def _notes(lines: Sequence[str], verdicts: Sequence[DependencyVerdict], unknown: Sequence[str]) -> list[str]:
    notes = [f"No file says what it depends on, so what it imports was installed: {', '.join(lines)}."] if lines else []
    notes += [verdict.refusal.message for verdict in verdicts if verdict.refusal is not None]
    if unknown:
        notes.append(f"It imports {', '.join(unknown)}, and of which package is not certain. Name that in a requirements.txt beside it.")
    return notes


def _undeclared(entries: Sequence[ToolEntry], folders: Mapping[str, Path]) -> dict[str, str]:
    """The Python scripts that say nothing, by their tools. Blocks."""
    found: dict[str, str] = {}
    for entry in entries:
        source, tool_id = entry.sources[0], entry.manifest.tool_id
        if isinstance(source, ScriptSource) and source.language is ScriptLanguage.PYTHON and source.script_path:
            script = Script(folders[tool_id] / source.script_path, source.script_path)
            if dependencies_of(script, ScriptLanguage.PYTHON).kind is Kind.NOTHING:
                found[tool_id] = source.script_path
    return found
