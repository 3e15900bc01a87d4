"""The workbench of a task: a folder of this host with all that it makes until that is a tool."""

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
_MOST_PROJECTS = 8
_EDIT_S = 30.0
_LOCK = "requirements.lock"
_MOST_LOCK = 16 * 1024 * 1024
_BENCH = "bench"
"""In the folder of a task, where its other steps have theirs."""


class Workbench:
    """Of one task. Every operation but a command may be repeated: what was done is not done twice."""

    def __init__(self, task_id: str, folder: Path, parts: BenchParts, builds: BuildContainers | str) -> None:
        self.task_id, self.folder, self._parts = task_id, folder, parts
        self.files = BenchFiles(folder, folder / "uses")
        self.environments = ProjectEnvironments(parts, folder / "environments", folder / "accounts" / "install")
        self.commands = BenchCommands(parts, folder, folder / "accounts")
        self.containers = BenchContainers(task_id, folder, builds)
        self._creating = asyncio.Lock()

    @property
    def python_version(self) -> str:
        """Of the one Python that projects can have, which is ours, as `3.11`."""
        return f"{sys.version_info.major}.{sys.version_info.minor}"

    async def ensure(self) -> None:
        """Raises OSError."""
        await finished(self._ensure)

    async def create_project(self, name: str, dependencies: Sequence[str] = ()) -> str:
        """An environment and a `pyproject.toml`, unless they are there; the folder as the model sees it. Raises BenchRefused."""
        if not _PROJECT.fullmatch(name):
            raise BenchRefused(f"{name!r} is no name for a project: small letters, digits, '-' and '_', the first a letter, 64 at most.")
        place = Place(Area.WORK, (name, "pyproject.toml"))
        async with self._creating:
            await asyncio.to_thread(self._require_few, name)
            await self._create(name, place, dependencies)
        return str(WORK / name)

    async def _create(self, name: str, place: Place, dependencies: Sequence[str]) -> None:
        if not await asyncio.to_thread(self._has, place):
            text = _PYPROJECT.format(name=name, python=self.python_version, dependencies=json.dumps([*dependencies], indent=4))
            await finished(self.files.write, place, text, "overwrite", f"project:{name}:{secrets.token_hex(8)}")
        await self.environments.ensure(name)

    async def bring(self, name: str, folder: Path, room: Room | None = None) -> str:
        """A copy of that folder's files below `/work`, unless there is something of the name; as the model sees it.

        Raises BenchRefused for more than there is room for, OSError.
        """
        target, part = self.folder / Area.WORK.value / name, self.folder / "brought"
        if not await asyncio.to_thread(target.is_dir):
            try:
                await finished(pack_repository, folder, part, room)
            except ValueError as error:
                await finished(discard, part)
                raise BenchRefused(str(error)) from error
            await finished(owner_of(self.folder / Area.WORK.value).own_all, part)
            await finished(part.rename, target)
        return str(WORK / name)

    async def bring_project(self, name: str, folder: Path) -> str:
        """The same, as a project that has the packages of its lock. Raises BenchRefused, ScriptFailure, OSError.

        The lock is not judged again: its tool has passed the gate.
        """
        await self.bring(name, folder)
        lock = await asyncio.to_thread(lambda: self.tree_of(name).text(_LOCK, _MOST_LOCK)) or ""
        # What is said nowhere else: an app that was packed with our launcher has its own lists below.
        pins = pinned(lock)
        made = await self.create_project(name, pins)
        if pins and not await asyncio.to_thread(self.environments.installed, name):
            await self.environments.install_lock(name, lock)
        return made

    def project_of(self, project_dir: str) -> str:
        """The name of a project that is there. Raises BenchRefused. Blocks."""
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
        """The log of it. Raises BenchRefused, ScriptFailure."""
        project, environment = await self._for_command(project_dir, command)
        return await self.commands.start(project, environment, command, wall_s, use_digest(use)[:8])

    async def add_dependency(self, project_dir: str, verdict: DependencyVerdict, wall_s: float, *, dev: bool) -> None:
        """What the gate let pass: installed, and written into the project. Raises BenchRefused, ScriptFailure."""
        project = await asyncio.to_thread(self.project_of, project_dir)
        await self.environments.install(project, verdict.requirement, verdict.not_after, wall_s)
        uv = (str(UV), "add", "--frozen", "--offline", "--quiet", *(["--dev"] if dev else []))
        folder, python = Path(WORK / project), ("--python", str(self._parts.programs.python.file))
        mounts = (Mount(self.folder / Area.WORK.value, Path(WORK), writable=True),)
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

        While no program of the task runs: one could put a link in the place of a folder that is being read.
        """
        return Tree.read(self._folder_of(project))

    async def remove(self) -> None:
        """All that runs for the task, its containers, and its folder. Raises StartFailed when a container does not go."""
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
        folder = self.folder / Area.WORK.value / name
        if folder.is_symlink() or not folder.is_dir():
            raise BenchRefused(
                f"{str(WORK / name)!r} is a link or a file, or is gone. It has to be a folder: make it again, or use another."
            )
        return folder

    def _has(self, place: Place) -> bool:
        return place.parts[-1] in {path.name for path in (self.folder / Area.WORK.value / place.parts[0]).glob("pyproject.toml")}

    def _ensure(self) -> None:
        for name in ("work", "logs", "uses", "environments", "accounts"):
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o755)


class Workbenches:
    """Those of one host, in `folder`. `builds` makes containers, or says why there are none."""

    def __init__(self, folder: Path, parts: BenchParts, builds: BuildContainers | str) -> None:
        self._folder, self._parts, self._builds = folder.absolute(), parts, builds
        self._known: dict[str, Workbench] = {}

    async def of(self, task_id: str) -> Workbench:
        """Made if need be. Raises ValueError for what is no task's id, OSError."""
        bench = self._bench(task_id)
        await bench.ensure()
        return bench

    async def remove(self, task_id: str) -> None:
        """Also when there is none. Raises StartFailed when a container does not go."""
        await self._bench(task_id).remove()
        self._known.pop(task_id, None)

    async def present(self) -> frozenset[str]:
        """Ids of the tasks that have something here."""
        names = await asyncio.to_thread(lambda: [path.name for path in self._folder.iterdir()] if self._folder.is_dir() else [])
        return frozenset(name for name in {*names, *self._containers_of()} if is_making(name))

    async def clear(self, task_id: str) -> None:
        """Remove all that the task has here, also what its other steps made. Raises StartFailed when a container does not go."""
        await self.remove(task_id)
        await finished(discard, self._folder / task_id)

    async def close(self) -> None:
        """What runs in the background ends; everything else stays."""
        for bench in [*self._known.values()]:
            await bench.commands.end()

    def _containers_of(self) -> frozenset[str]:
        return frozenset() if isinstance(self._builds, str) else frozenset(one.tool_id.partition(":")[0] for one in self._builds.known)

    def _bench(self, task_id: str) -> Workbench:
        if not is_making(task_id):
            raise ValueError(f"{task_id!r} is no task's id")
        if task_id not in self._known:
            self._known[task_id] = Workbench(task_id, self._folder / task_id / _BENCH, self._parts, self._builds)
        return self._known[task_id]
