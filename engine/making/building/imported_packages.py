"""Locks what scripts depend on that do not say it: the well-known packages that they import."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.making.building.builds import Built
from engine.making.dependencies.gate import DependencyGate
from engine.making.failures import LockFailed
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
        """With a lock in the folder of each Python script that says nothing of what it depends on; those that need the same share a copy.

        Where there is no lock they stay as they are. Raises ScriptFailure, ValueError, OSError.
        """
        folders, notes = dict(built.folders), list(built.notes)
        for number, (imported, tool_ids) in enumerate((await asyncio.to_thread(self._alike, built.candidate.entries, folders)).items()):
            lock, told = await self._locked(imported, tool_ids)
            notes += [note for note in told if note not in notes]
            if lock:
                folder = self._work / "declared" / str(number)
                await asyncio.to_thread(pack_repository, imported.folder, folder)
                await asyncio.to_thread((folder / _LOCK).write_text, lock)
                folders |= dict.fromkeys(tool_ids, folder)
        return Built(built.candidate, folders, built.left_out, tuple(notes))

    async def lock_of(self, folder: Path, files: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """The text of a `requirements.lock` of what these files import, empty where that is nothing or cannot be locked, and notes.

        Raises ScriptFailure (`UnavailableError`).
        """
        return await self._locked(await asyncio.to_thread(lambda: self._imported(folder, Tree.read(folder), files)), files)

    def _alike(self, entries: Sequence[ToolEntry], folders: Mapping[str, Path]) -> Mapping["_Imported", Sequence[str]]:
        """The tools whose scripts say nothing, by what they import. Blocks."""
        found: dict[_Imported, list[str]] = {}
        trees: dict[Path, Tree] = {}
        for tool_id, file in _undeclared(entries, folders).items():
            folder = folders[tool_id]
            tree = trees.get(folder) or trees.setdefault(folder, Tree.read(folder))
            found.setdefault(self._imported(folder, tree, [file]), []).append(tool_id)
        return found

    def _imported(self, folder: Path, tree: Tree, files: Sequence[str]) -> "_Imported":
        """Blocks."""
        names = {name for file in files for name in imported_by(tree, PurePosixPath(file))}
        return _Imported(folder, *self._gate.packages_of_imports(names))

    async def _locked(self, imported: "_Imported", by: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        verdicts = await self._gate.judge(imported.packages)
        _require_index(verdicts)
        taken = [verdict for verdict in verdicts if verdict.refusal is None]
        not_after = min((verdict.not_after for verdict in taken if verdict.not_after is not None), default=None)
        lines = tuple(verdict.requirement for verdict in taken)
        try:
            lock = await self._locks.lock(Wanted(lines), (), self._work / "locking", not_after)
        except LockFailed as failure:
            return "", (f"What is imported by {', '.join(by)} was not installed: {failure.message}",)
        return lock, tuple(_notes(lines, verdicts, imported.unknown))


@dataclass(frozen=True, slots=True)
class _Imported:
    """By scripts in `folder`: well-known packages, and names of which the package is not certain."""

    folder: Path
    packages: tuple[str, ...]
    unknown: tuple[str, ...]


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
