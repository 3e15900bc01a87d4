"""Locks the dependencies of scripts that declare none: the well-known packages that they import."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.making.building.builds import Built
from engine.making.dependencies.gate import DependencyGate, not_after_of, refusals_of
from engine.making.failures import LockFailed
from engine.making.python_sources.imports import imported_by
from engine.making.python_sources.wanted import Wanted
from engine.making.repositories.packaging import pack_repository
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import ProjectLocks
from engine.runtimes.environments.dependencies import Kind, Script, dependencies_of
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import ScriptLanguage, ScriptSource
from toolagent_service.contracts.dependency_policy import DependencyRefusal

_LOCK = "requirements.lock"


class ImportedPackages:
    """The gate judges these packages like those that a model asks for. `work` is a folder of the task."""

    def __init__(self, gate: DependencyGate, locks: ProjectLocks, work: Path) -> None:
        self._gate, self._locks, self._work = gate, locks, work

    async def declared(self, built: Built) -> Built:
        """Adds a lock to the folder of each Python script that declares no dependencies. Scripts with the same needs share a copy.

        A script that cannot be locked stays as it is. Raises ScriptFailure, ValueError, OSError.
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
        """A `requirements.lock` for what these files import, empty if that is nothing or cannot be locked; and notes.

        They run with `folder` on their path. Raises ScriptFailure (`UnavailableError`).
        """
        return await self._locked(await asyncio.to_thread(lambda: self._imported(folder, Tree.read(folder), files, from_top=True)), files)

    def _alike(self, entries: Sequence[ToolEntry], folders: Mapping[str, Path]) -> Mapping["_Imported", Sequence[str]]:
        """Tools whose scripts declare no dependencies, by what they import. Blocks."""
        found: dict[_Imported, list[str]] = {}
        trees: dict[Path, Tree] = {}
        for tool_id, file in _undeclared(entries, folders).items():
            folder = folders[tool_id]
            tree = trees.get(folder) or trees.setdefault(folder, Tree.read(folder))
            found.setdefault(self._imported(folder, tree, [file]), []).append(tool_id)
        return found

    def _imported(self, folder: Path, tree: Tree, files: Sequence[str], *, from_top: bool = False) -> "_Imported":
        """Blocks."""
        names = {name for file in files for name in imported_by(tree, PurePosixPath(file), from_top=from_top)}
        return _Imported(folder, *self._gate.packages_of_imports(names))

    async def _locked(self, imported: "_Imported", by: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        verdicts = await self._gate.judge(imported.packages)
        refusals = refusals_of(verdicts)
        lines = tuple(verdict.requirement for verdict in verdicts if verdict.passed)
        try:
            lock = await self._locks.lock(Wanted(lines), (), self._work / "locking", not_after_of(verdicts))
        except LockFailed as failure:
            return "", (f"What is imported by {', '.join(by)} was not installed: {failure.message}",)
        return lock, tuple(_notes(lines, refusals, imported.unknown))


@dataclass(frozen=True, slots=True)
class _Imported:
    """Imports of scripts in `folder`: well-known packages, and names whose package is not certain."""

    folder: Path
    packages: tuple[str, ...]
    unknown: tuple[str, ...]


def _notes(lines: Sequence[str], refusals: Sequence[DependencyRefusal], unknown: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"No file says what it depends on, so what it imports was installed: {', '.join(lines)}."
    yield from (refusal.message for refusal in refusals)
    if unknown:
        yield f"It imports {', '.join(unknown)}, and of which package is not certain. Name that in a requirements.txt beside it."


def _undeclared(entries: Sequence[ToolEntry], folders: Mapping[str, Path]) -> dict[str, str]:
    """Python scripts that declare no dependencies, by tool id. Blocks."""
    found: dict[str, str] = {}
    for entry in entries:
        source, tool_id = entry.sources[0], entry.manifest.tool_id
        if isinstance(source, ScriptSource) and source.language is ScriptLanguage.PYTHON and source.script_path:
            script = Script(folders[tool_id] / source.script_path, source.script_path)
            if dependencies_of(script, ScriptLanguage.PYTHON).kind is Kind.NOTHING:
                found[tool_id] = source.script_path
    return found
