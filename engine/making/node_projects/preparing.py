"""Prepares a Node.js project as its author publishes it: builds and packs it, locks and installs its dependencies."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, le, lt
from pathlib import Path, PurePosixPath

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.building.builds import Job
from engine.making.failures import BuildFailed, LeftOut, LockFailed, NotWanted
from engine.making.node_projects.locks import NodeLocks, own_lock
from engine.making.node_projects.manifests import build_script, is_made, programs_of, started_of, uses_bun
from engine.making.node_projects.npm_runs import RUNNERS, NpmRuns
from engine.making.node_projects.plain_files import new_folder, require_plain
from engine.making.node_projects.unpacking import unpacked
from engine.making.node_projects.workspaces import Layout, Package, laid_out
from engine.making.python_sources.projects import Table
from engine.making.repositories.packaging import BUILDING, Room, copy_into, open_to_all, pack_repository
from engine.runtimes.environments.environments import Environment, ScriptEnvironments
from engine.runtimes.environments.programs import Program
from engine.runtimes.folders import entries
from toolagent.contracts.sources import ScriptLanguage

PACKAGE = "package"
"""The folder beside our launcher with the published files."""

_AS_NPM = Path(__file__).parent / "inside/as_npm.sh"
_PACKED = "packed"
_MOST_RUNS = 4
"""All work for a project may take as long as so many runs of npm."""
_NO_SCRIPTS = "--ignore-scripts"
_ENDINGS = ("", ".js", ".cjs", ".mjs", "/index.js")

_COMPARATOR = re.compile(r"(>=|<=|>|<|=|\^|~)?\s*v?(\d{1,4})(?:\.(?:\d{1,6}|x|\*))*")
_SIGNS = {">=": ge, ">": ge, "<": lt, "<=": le}
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class NodePrepared:
    """`programs` are files by name, relative to `into`; `starts` are files that may start it, the likeliest first.

    `left_out` are programs that cannot be tools; `notes` tell what did not fit, and the replacement.
    """

    programs: Mapping[str, str]
    starts: tuple[str, ...]
    environment: Environment
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()


class NodeProjects:
    """Environments belong to the task until its tools are registered."""

    def __init__(self, runs: NpmRuns, environments: ScriptEnvironments) -> None:
        self._runs, self._environments = runs, environments
        self._locks = NodeLocks(runs, environments)

    async def prepare(self, project: str, job: Job, *, is_whole: bool = False) -> NodePrepared:
        """`project` is a folder of the repository. Its published files, or with `is_whole` all files, go to the place's folder.

        Raises BuildFailed, ScriptFailure (`UnavailableError`).
        """
        over = asyncio.timeout(_MOST_RUNS * self._runs.timeout_s)
        try:
            async with over:
                return await self._prepared(project, job, is_whole=is_whole)
        except (ValueError, OSError) as error:
            if over.expired():
                message = f"The project cannot be built: all of it took longer than {_MOST_RUNS * self._runs.timeout_s:g} s."
                raise LockFailed(message) from error
            raise BuildFailed(f"The project cannot be packed: {error}") from error

    async def _prepared(self, project: str, job: Job, *, is_whole: bool) -> NodePrepared:
        work, into = job.place.work, job.place.folder
        await asyncio.to_thread(remove, work)
        try:
            source = work / "source"
            await asyncio.to_thread(_copied, job.repository, source)
            layout = await asyncio.to_thread(laid_out, source, PurePosixPath(project))
            lock = await asyncio.to_thread(own_lock, source, layout)
            notes = [
                *engines_note(layout.project.manifest, await self._runs.node_version(work)),
                *await self._built(work, source, layout, lock.pins, job),
            ]
            job.progress("packing the project")
            packages = [*layout.installed, *([] if is_whole else [layout.project])]
            packed = await self._packed(work, source, layout, packages)
            await asyncio.to_thread(_put, work, into, packed, source / project if is_whole else None, layout)
            environment, told = await self._locks.install(lock, work, into, layout, packed, job.about.tool_name, job.progress)
        finally:
            await asyncio.shield(asyncio.to_thread(discard, work))
        return await asyncio.to_thread(_prepared, into, layout, environment, (*notes, *told))

    async def _built(self, work: Path, source: Path, layout: Layout, pins: Mapping[str, str], job: Job) -> Sequence[str]:
        """Runs the build scripts of the project and of the packages it depends on; returns notes."""
        packages, progress = (*layout.siblings, layout.project), job.progress
        scripts = [
            (one, script) for one in packages if (script := await asyncio.to_thread(build_script, one.manifest, source / one.folder))
        ]
        if not scripts:
            return ()
        progress("installing what the project is built with")
        root = source / layout.root
        what, is_exact = "What the project is built with cannot be installed", not layout.siblings
        installed = await self._runs.install(work, root, what, is_exact=is_exact, pins=pins)
        notes = installed.workarounds
        if installed.unpinned:
            notes = (
                *notes,
                f"It was built with versions that npm chose now, as it could not install its lock's: {installed.unpinned[:300]}",
            )
        runners = await asyncio.to_thread(_runners, work)
        bun = await self._bun(runners, job) if any(uses_bun(package.manifest, script) for package, script in scripts) else None
        for package, script in scripts:
            progress(f"building {package.name}" if layout.siblings else "building the project")
            folder = source / package.folder
            try:
                await self._runs.take(("run", script), work, folder, f"{package.name} cannot be built", needs_index=False, bun=bun)
            except LockFailed as failure:
                await asyncio.to_thread(require_plain, work, folder)
                if not await asyncio.to_thread(is_made, package.manifest, folder):
                    raise
                notes = (*notes, f"Its build ended with a failure, and what it had made by then was taken: {failure.message[:300]}")
        return notes

    async def _bun(self, runners: Path, job: Job) -> Program:
        """Links Bun for scripts. Call it before anything of the project runs. Raises LockFailed, ScriptFailure."""
        programs = await self._environments.provide(ScriptLanguage.BUN, job.about.tool_name, job.progress)
        bun = programs.require("Bun", programs.bun)
        for name in ("bun", "bunx"):
            (runners / name).symlink_to(bun.file)
        return bun

    async def _packed(self, work: Path, source: Path, layout: Layout, packages: Sequence[Package]) -> Path:
        """A folder with the archives of these packages."""
        packed = await asyncio.to_thread(new_folder, work, _PACKED)
        require_own_archives(packages)
        if packages:
            folders = [str(source / one.folder) for one in packages]
            for folder in folders:
                await asyncio.to_thread(require_plain, work, Path(folder))
            arguments = ("pack", *folders, _NO_SCRIPTS, "--pack-destination", str(packed))
            await self._runs.take(arguments, work, source / layout.root, "The project cannot be packed", needs_index=False)
        return packed


def require_own_archives(packages: Sequence[Package]) -> None:
    """Raises NotWanted if two packages have the same archive: npm gives `@a/b` and `a-b` the same name."""
    by_archive: dict[str, str] = {}
    for package in packages:
        other = by_archive.setdefault(package.archive, package.name)
        if other != package.name:
            raise NotWanted(f"{other} and {package.name} are both packed as {package.archive}. Give one of them another name or version.")


def _runners(work: Path) -> Path:
    """The folder of what runs scripts: what takes the place of pnpm and yarn. Call it before anything of the project runs."""
    folder = new_folder(work, RUNNERS)
    for name in ("pnpm", "yarn"):
        (folder / name).write_text(_AS_NPM.read_text())
        (folder / name).chmod(0o755)
    return folder


def _copied(repository: Path, source: Path) -> None:
    pack_repository(repository, source, BUILDING)
    source.parent.chmod(0o777)
    source.chmod(0o777)
    for entry in entries(source):
        Path(entry.path).chmod(0o777 if entry.is_dir() else entry.stat().st_mode | 0o666)


def _put(work: Path, into: Path, packed: Path, whole: Path | None, layout: Layout) -> None:
    """Raises LockFailed, ValueError, OSError."""
    remove(into)
    if whole is None:
        require_plain(work, packed)
        unpacked(packed / layout.project.archive, into / PACKAGE, Room())
    else:
        require_plain(work, whole)
        into.mkdir(parents=True)
        copy_into(whole, into / PACKAGE, Room())
    open_to_all(into)


def _prepared(into: Path, layout: Layout, environment: Environment, notes: tuple[str, ...]) -> NodePrepared:
    told = programs_of(layout.project.manifest)
    found = {name: _file(into, file) for name, file in told.files.items()}
    missing = tuple(LeftOut(name, f"Its file {told.files[name]!r} is not in the package.") for name, file in found.items() if not file)
    starts = [file for one in started_of(layout.project.manifest) if (file := _file(into, one))]
    programs = {name: file for name, file in found.items() if file}
    return NodePrepared(programs, tuple(dict.fromkeys(starts)), environment, (*told.left_out, *missing), notes)


def _file(into: Path, name: str) -> str:
    """The file as Node.js finds it; empty if there is none."""
    return next((f"{PACKAGE}/{name}{ending}" for ending in _ENDINGS if (into / PACKAGE / f"{name}{ending}").is_file()), "")


def engines_note(manifest: Table, version: str) -> tuple[str, ...]:
    """A note if `engines` excludes the Node.js of this machine, as far as it can be read without npm; else nothing.

    `version` is the output of `node --version`.
    """
    wanted = manifest.table("engines").text("node")[:_LONGEST]
    major = re.match(r"v?(\d+)", version)
    if not wanted or major is None or any(_fits(one, int(major[1])) for one in wanted.split("||")):
        return ()
    return (f"It says that it is for Node.js {wanted}; it runs with {version}, which is what is here.",)


def _fits(alternative: str, major: int) -> bool:
    """Compares major versions only; what cannot be read fits."""
    return all(_SIGNS.get(sign, eq)(major, int(number)) for sign, number in _COMPARATOR.findall(alternative))
