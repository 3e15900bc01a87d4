"""Brings a Node.js project to what its author publishes: built, packed, its versions locked, what it depends on installed."""

import asyncio
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import cast

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.packaging import BUILDING, Room, copy_into, open_to_all, pack_repository
from engine.making.projects import Table
from engine.making.uv_runs import LockFailed
from engine.making.wanted import NotWanted
from engine.runtimes.runtime import Progress
from engine.runtimes.scripts.dependencies import Dependencies, Kind
from engine.runtimes.scripts.environments import Environment, ScriptEnvironments
from toolagent.contracts.sources import ScriptLanguage

__all__ = ["PACKAGE", "NodeOrder", "NodePrepared", "NodeProjects"]

PACKAGE = "package"
"""The folder beside our launcher with what is published."""

_MANIFEST, _LOCK = "package.json", "package-lock.json"
_MOST_BYTES = 16 * 1024 * 1024
_FOR_ALL = 0o777
_NO_SCRIPTS = "--ignore-scripts"
_KEPT = ("name", "version", "type", "dependencies", "optionalDependencies", "peerDependencies", "overrides")
_LOCKED_TOO = ("devDependencies", "bundleDependencies", "bundledDependencies")
"""What a lock speaks of, though it is not installed."""


@dataclass(frozen=True, slots=True)
class NodeOrder:
    """`project` is a folder of the repository. What is published goes to `into`, which is made anew; `work` is for the way there."""

    repository: Path
    project: str
    into: Path
    work: Path
    tool_name: str


@dataclass(frozen=True, slots=True)
class NodePrepared:
    """`programs` are its files by name, as seen from `into`; `main` is what it is started as, if it says so."""

    programs: Mapping[str, str]
    main: str
    environment: Environment
    notes: tuple[str, ...] = field(default=())


class NodeProjects:
    """Environments belong to the task until its tools are registered."""

    def __init__(self, runs: NpmRuns, environments: ScriptEnvironments) -> None:
        self._runs, self._environments = runs, environments

    async def prepare(self, order: NodeOrder, progress: Progress) -> NodePrepared:
        """Raises NotWanted, LockFailed, ScriptFailure; ValueError and OSError for what cannot be copied."""
        await asyncio.to_thread(remove, order.work)
        try:
            source = order.work / "source" / order.project
            await asyncio.to_thread(_copied, order.repository, order.work / "source")
            manifest = await asyncio.to_thread(_manifest, source / _MANIFEST)
            if await asyncio.to_thread(_is_to_be_built, source, manifest):
                await self._build(order, source, progress)
            progress("packing the project")
            await self._runs.take(
                ("pack", _NO_SCRIPTS, "--pack-destination", str(order.work)), order.work, source, "The project cannot be packed"
            )
            await asyncio.to_thread(_unpacked, order.work, order.into)
            notes = await self._lock(order, source, manifest, progress)
            environment = await self._environment(order, progress)
        finally:
            await asyncio.shield(asyncio.to_thread(discard, order.work))
        programs = {name: f"{PACKAGE}/{file.removeprefix('./')}" for name, file in _programs(manifest).items()}
        main = manifest.text("main")
        return NodePrepared(programs, f"{PACKAGE}/{main.removeprefix('./')}" if main else "", environment, notes)

    async def _build(self, order: NodeOrder, source: Path, progress: Progress) -> None:
        """By its own `build`, with what it needs for that."""
        progress("installing what the project is built with")
        is_locked = await asyncio.to_thread((source / _LOCK).is_file)
        what = "What the project is built with cannot be installed"
        try:
            await self._runs.take(("ci" if is_locked else "install", _NO_SCRIPTS), order.work, source, what)
        except LockFailed:
            if not is_locked:
                raise
            await self._runs.take(("install", _NO_SCRIPTS), order.work, source, what)
        progress("building the project")
        await self._runs.take(("run", "build"), order.work, source, "The project cannot be built", needs_index=False)

    async def _lock(self, order: NodeOrder, source: Path, manifest: Table, progress: Progress) -> tuple[str, ...]:
        """Its own lock; without one that can be used, one that is made now."""
        own = {name: manifest.values[name] for name in _KEPT if name in manifest.values}
        if await asyncio.to_thread(_has_lock, source) and not manifest.values.get("workspaces"):
            # Without its scripts, which are for those who develop it.
            whole = own | {name: manifest.values[name] for name in _LOCKED_TOO if name in manifest.values}
            await asyncio.to_thread(_write, order.into, json.dumps(whole), _text(source / _LOCK))
            return ()
        progress("locking what the project depends on")
        place = order.work / "locking"
        await asyncio.to_thread(_write_manifest, place, own)
        what = "What the project depends on cannot be locked"
        await self._runs.take(("install", "--package-lock-only", _NO_SCRIPTS), order.work, place, what)
        await asyncio.to_thread(_write, order.into, json.dumps(own), _text(place / _LOCK))
        return ("The project has no package-lock.json of its own: its versions were chosen now.",)

    async def _environment(self, order: NodeOrder, progress: Progress) -> Environment:
        contents = await asyncio.to_thread(lambda: {name: (order.into / name).read_bytes() for name in (_LOCK, _MANIFEST)})
        dependencies = Dependencies(ScriptLanguage.NODEJS, Kind.NPM_LOCK, contents)
        progress("installing what the project depends on")
        return await self._environments.ensure(dependencies, order.tool_name, progress)


def _copied(repository: Path, source: Path) -> None:
    pack_repository(repository, source, BUILDING)
    for path in (source.parent, source, *(path for path in source.rglob("*") if path.is_dir())):
        path.chmod(_FOR_ALL)


def _manifest(path: Path) -> Table:
    """Raises NotWanted."""
    try:
        read: object = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise NotWanted(f"{path.name} cannot be read: {error}") from error
    if not isinstance(read, dict):
        raise NotWanted(f"{path.name} is no object.")
    return Table(cast("dict[str, object]", read))


def _programs(manifest: Table) -> Mapping[str, str]:
    name = manifest.text("name").rpartition("/")[2]
    if file := manifest.text("bin"):
        return {name: file} if name else {}
    return {program: file for program, file in manifest.table("bin").values.items() if isinstance(file, str)}


def _is_to_be_built(source: Path, manifest: Table) -> bool:
    """Where what it says it consists of is not there, or is made of something else."""
    if "build" not in manifest.table("scripts").values:
        return False
    files = [*_programs(manifest).values(), *filter(None, [manifest.text("main")])]
    made = [file for file in files if PurePosixPath(file).parts[:1] in (("dist",), ("build",), ("lib",), ("out",))]
    return bool(made) or any(not (source / file).is_file() for file in files)


def _has_lock(source: Path) -> bool:
    return (source / _LOCK).is_file() and not (source / _LOCK).is_symlink()


def _unpacked(work: Path, into: Path) -> None:
    """Raises LockFailed, ValueError, OSError."""
    archives = sorted(work.glob("*.tgz"))
    if len(archives) != 1 or archives[0].is_symlink():
        raise LockFailed(f"The project cannot be packed: npm made {len(archives)} packages.")
    remove(into)
    into.mkdir(parents=True)
    place = work / "unpacked"
    place.mkdir()
    try:
        with tarfile.open(archives[0], "r:gz") as tar:
            tar.extractall(place, filter="data")
    except tarfile.TarError as error:
        raise LockFailed(f"The project cannot be packed: {error}") from error
    copy_into(place / PACKAGE, into / PACKAGE, Room())
    open_to_all(into)


def _write_manifest(place: Path, own: Mapping[str, object]) -> None:
    place.mkdir()
    place.chmod(_FOR_ALL)
    (place / _MANIFEST).write_text(json.dumps(own))
    (place / _MANIFEST).chmod(0o666)


def _write(into: Path, manifest: str, lock: str) -> None:
    for name, text in ((_MANIFEST, manifest), (_LOCK, lock)):
        (into / name).write_text(text)
        (into / name).chmod(0o644)


def _text(path: Path) -> str:
    """Raises NotWanted for what is no file, or is too large."""
    if path.is_symlink() or not path.is_file():
        raise NotWanted(f"There is no {path.name}.")
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise NotWanted(f"{path.name} is larger than {_MOST_BYTES} bytes.")
    return content.decode(errors="replace")
