"""The workbench of a task: a folder on this host for its files, environments and containers."""

import asyncio
import json
import re
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.disk.leftovers import discard
from engine.making.repositories.packaging import Room, pack_repository
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import pinned
from engine.making.workbench.commands import BenchCommands, Ran
from engine.making.workbench.containers import BenchContainers
from engine.making.workbench.environments import ProjectEnvironments
from engine.making.workbench.files import BenchFiles
from engine.making.workbench.finishing import finished
from engine.making.workbench.notes import use_digest
from engine.making.workbench.places import WORK, Area, Place, place_of
from engine.making.workbench.refusal import BenchRefused
from engine.making.workbench.runs import UV, BenchParts, Run
from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.process.box import Mount
from engine.runtimes.sandbox.identity import owner_of
from toolagent.contracts.task_specs import is_making
from toolagent_service.contracts.dependency_policy import DependencyVerdict

_PROJECT = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_PYPROJECT = """\
[project]
name = "{name}"
version = "0.1.0"
requires-python = ">={python}"
dependencies = {dependencies}

[dependency-groups]
dev = []

[tool.uv]
package = false
"""
_ABOUT = "pyproject.toml"
_MOST_PROJECTS = 8
_EDIT_S = 30.0
_LOCK = "requirements.lock"
_MOST_LOCK = 16 * 1024 * 1024
_BENCH = "bench"
"""The workbench's folder in the folder of a task."""


class Workbench:
    """The workbench of one task. Every operation except a command is idempotent."""

    def __init__(self, task_id: str, folder: Path, parts: BenchParts, builds: BuildContainers | str) -> None:
        self.task_id, self.folder, self._work, self._parts = task_id, folder, folder / Area.WORK, parts
        self.files = BenchFiles(folder, folder / "uses")
        self.environments = ProjectEnvironments(parts, folder / "environments", folder / "accounts" / "install")
        self.commands = BenchCommands(parts, folder, folder / "accounts")
        self.containers = BenchContainers(task_id, folder, builds)
        self._creating = asyncio.Lock()

    @property
    def python_version(self) -> str:
        """The version of our Python, the only one for projects, as `3.11`."""
        return f"{sys.version_info.major}.{sys.version_info.minor}"

    async def ensure(self) -> None:
        """Raises OSError."""

        def make() -> None:
            for name in ("work", "logs", "uses", "environments", "accounts"):
                (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o755)

        await finished(make)

    async def create_project(self, name: str, dependencies: Sequence[str] = ()) -> str:
        """Makes an environment and a `pyproject.toml`, unless they exist; returns the folder as the model sees it. Raises BenchRefused."""
        if not _PROJECT.fullmatch(name):
            raise BenchRefused(f"{name!r} is no name for a project: small letters, digits, '-' and '_', the first a letter, 64 at most.")
        async with self._creating:
            await asyncio.to_thread(self._require_few, name)
            if not await asyncio.to_thread((self._work / name / _ABOUT).exists):
                text = _PYPROJECT.format(name=name, python=self.python_version, dependencies=json.dumps([*dependencies], indent=4))
                place = Place(Area.WORK, (name, _ABOUT))
                await finished(self.files.write, place, text, "overwrite", f"project:{name}:{secrets.token_hex(8)}")
            await self.environments.ensure(name)
        return str(WORK / name)

    async def bring(self, name: str, folder: Path, room: Room | None = None) -> str:
        """Copies a folder to `/work`, unless the name exists there; returns the copy as the model sees it.

        Raises BenchRefused if it does not fit, OSError.
        """
        target, part = self._work / name, self.folder / "brought"
        if not await asyncio.to_thread(target.is_dir):
            try:
                await finished(pack_repository, folder, part, room)
            except ValueError as error:
                await finished(discard, part)
                raise BenchRefused(str(error)) from error
            await finished(owner_of(self._work).own_all, part)
            await finished(part.rename, target)
        return str(WORK / name)

    async def bring_project(self, name: str, folder: Path) -> str:
        """Copies a folder as a project with the packages of its lock. Raises BenchRefused, ScriptFailure, OSError.

        The lock is not judged again, because its tool passed the gate.
        """
        await self.bring(name, folder)
        lock = await asyncio.to_thread(lambda: self.tree_of(name).text(_LOCK, _MOST_LOCK)) or ""
        # The lock is the only list at the top: an app that our launcher serves has its own lists below.
        pins = pinned(lock)
        made = await self.create_project(name, pins)
        if pins and not await asyncio.to_thread(self.environments.installed, name):
            await self.environments.install_lock(name, lock)
        return made

    def project_of(self, project_dir: str) -> str:
        """The name of an existing project. Raises BenchRefused. Blocks."""
        place = place_of(project_dir)
        if place.area is Area.WORK and len(place.parts) == 1 and self.environments.newest(place.parts[0]) is not None:
            return place.parts[0]
        known = self._projects()
        told = f"There are: {', '.join(str(WORK / name) for name in known)}." if known else "There is none yet."
        raise BenchRefused(f"{project_dir!r} is no project. {told} Make one with create_uv_project, and name the folder that it returns.")

    async def run(self, project_dir: str, command: str, wall_s: float, use: str) -> Ran:
        """Raises BenchRefused, ScriptFailure."""
        project, environment = await self._for_command(project_dir, command)
        return await self.commands.run(project, environment, command, wall_s, use_digest(use)[:8])

    async def start(self, project_dir: str, command: str, wall_s: float, use: str) -> str:
        """Starts a command in the background; returns its log. Raises BenchRefused, ScriptFailure."""
        project, environment = await self._for_command(project_dir, command)
        return await self.commands.start(project, environment, command, wall_s, use_digest(use)[:8])

    async def add_dependency(self, project_dir: str, verdict: DependencyVerdict, wall_s: float, *, dev: bool) -> None:
        """Installs a package that passed the gate, and writes it into the project. Raises BenchRefused, ScriptFailure."""
        project = await asyncio.to_thread(self.project_of, project_dir)
        await self.environments.install(project, verdict.requirement, verdict.not_after, wall_s)
        uv = (str(UV), "add", "--frozen", "--offline", "--quiet", *(["--dev"] if dev else []))
        folder, python = Path(WORK / project), ("--python", str(self._parts.programs.python.file))
        mounts = (Mount(self._work, Path(WORK), writable=True),)
        done = await self._parts.run(
            project, Run((*uv, *python, verdict.requirement), folder, _EDIT_S, mounts), self.folder / "accounts" / "edit"
        )
        if done.code != 0:
            told = done.stderr.decode(errors="replace").strip()[-1_000:]
            raise BenchRefused(
                f"It is installed, but could not be written into pyproject.toml. Is that file in order? Mend it, ask again.\n{told}"
            )

    def tree_of(self, project: str) -> Tree:
        """The files of a project, or of another folder directly below `/work`. Raises BenchRefused. Blocks.

        Call it while no program of the task runs, which could replace a folder by a link.
        """
        return Tree.read(self._folder_of(project))

    async def remove(self) -> None:
        """Ends the task's programs; removes its containers and its folder. Raises StartFailed if a container cannot be removed."""
        await self.commands.end()
        await self.containers.remove()
        await finished(discard, self.folder)

    async def _for_command(self, project_dir: str, command: str) -> tuple[str, Path]:
        if not command.strip() or "\0" in command:
            raise BenchRefused("The command is empty, or holds a NUL character.")
        project = await asyncio.to_thread(self.project_of, project_dir)
        await asyncio.to_thread(self._folder_of, project)
        return project, await self.environments.ensure(project)

    def _require_few(self, name: str) -> None:
        known = self._projects()
        if name not in known and len(known) >= _MOST_PROJECTS:
            raise BenchRefused(f"There are {len(known)} projects, which is the most. Use one of them: {', '.join(known)}.")

    def _projects(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "environments").iterdir() if self.environments.newest(path.name))

    def _folder_of(self, name: str) -> Path:
        folder = self._work / name
        if folder.is_symlink() or not folder.is_dir():
            raise BenchRefused(
                f"{str(WORK / name)!r} is a link or a file, or is gone. It has to be a folder: make it again, or use another."
            )
        return folder


class Workbenches:
    """The workbenches of a host, in `folder`. `builds` makes containers, or says why there are none."""

    def __init__(self, folder: Path, parts: BenchParts, builds: BuildContainers | str) -> None:
        self._folder, self._parts, self._builds = folder.absolute(), parts, builds
        self._known: dict[str, Workbench] = {}

    async def of(self, task_id: str) -> Workbench:
        """The task's workbench, made if needed. Raises ValueError if the id is no task's, OSError."""
        bench = self._bench(task_id)
        await bench.ensure()
        return bench

    async def remove(self, task_id: str) -> None:
        """Removes the task's workbench, if there is one. Raises StartFailed if a container cannot be removed."""
        await self._bench(task_id).remove()
        self._known.pop(task_id, None)

    async def present(self) -> frozenset[str]:
        """The ids of tasks with files or containers here."""
        names = await asyncio.to_thread(lambda: [path.name for path in self._folder.iterdir()] if self._folder.is_dir() else [])
        builds = () if isinstance(self._builds, str) else self._builds.known
        return frozenset(filter(is_making, (*names, *(one.tool_id.partition(":")[0] for one in builds))))

    async def clear(self, task_id: str) -> None:
        """Removes everything of the task, also of its other steps. Raises StartFailed if a container cannot be removed."""
        await self.remove(task_id)
        await finished(discard, self._folder / task_id)

    async def close(self) -> None:
        """Ends background commands; everything else stays."""
        for bench in [*self._known.values()]:
            await bench.commands.end()

    def _bench(self, task_id: str) -> Workbench:
        if not is_making(task_id):
            raise ValueError(f"{task_id!r} is no task's id")
        if task_id not in self._known:
            self._known[task_id] = Workbench(task_id, self._folder / task_id / _BENCH, self._parts, self._builds)
        return self._known[task_id]
