"""The packages of a task's projects: each installation that succeeds is a version of its own, and the newest is the one in use."""

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.workbench.finishing import finished
from engine.making.workbench.places import environment_of
from engine.making.workbench.refusal import BenchRefused
from engine.making.workbench.runs import UV, BenchParts, Run, too_much
from engine.runtimes.environments.execution import Execution
from engine.runtimes.folders import seal
from engine.runtimes.process.box import Mount
from engine.runtimes.process.file_lock import locked

_KEPT = 3
"""Versions of one environment: a program in the background may still run with an earlier one."""

_STEP_S, _LOCK_S = 60.0, 300.0
_TOLD = 4_000
_FROM = Path("/from")
_CACHE = Path("/cache")
_LOCK = Path("/requirements.lock")
_PART = "part"
_FRESH = "cache"
_INSTALLED = re.compile(r"^(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)\.dist-info$")


class ProjectEnvironments:
    """Of one task, in `folder`: `<project>/<number>`. What is there by its number is whole and is not changed any more.

    A version is made as `part`, in the sandbox, of a copy of the one before; a crash leaves a part, which the next installation removes.
    """

    def __init__(self, parts: BenchParts, folder: Path, logs: Path) -> None:
        self._parts, self._folder, self._logs = parts, folder, logs

    def newest(self, project: str) -> Path | None:
        """Blocks."""
        versions = self._versions(project)
        return versions[-1] if versions else None

    def installed(self, project: str) -> dict[str, str]:
        """Versions by name, as their folders have it (`_` for `-`). Blocks."""
        newest = self.newest(project)
        found = (path.name for path in newest.glob("lib/python*/site-packages/*.dist-info")) if newest else ()
        return {match["name"].lower(): match["version"] for match in map(_INSTALLED.match, found) if match}

    async def ensure(self, project: str) -> Path:
        """A bare one, unless there is one. Raises BenchRefused, ScriptFailure, OSError."""
        async with self._turn(project):
            newest = await asyncio.to_thread(self.newest, project)
            if newest is not None:
                return newest
            part = await finished(self._part, project)
            await finished(remove, part.with_name(_FRESH))
            target, uv = str(environment_of(project)), str(UV)
            python = str(self._parts.programs.python.file)
            # Found from where it is, as it is made at one place and used at another where the sandbox has no view of its own.
            made = (uv, "venv", "--relocatable", "--no-project", "--allow-existing", "--python", python, target)
            # Not the one that installers write to: we write here, and must not follow what they have put there.
            cache = part.with_name(_FRESH)
            mounts = (Mount(part, Path(target), writable=True), Mount(cache, _CACHE, writable=True))
            try:
                await self._parts.interpreters.put_into(cache, part.with_name("interpreter"))
                await self._step(project, Run(made, Path(target), _STEP_S, mounts, {"UV_CACHE_DIR": str(_CACHE)}))
                return await finished(self._finish, part, project)
            finally:
                await finished(discard, cache)
                await finished(discard, part)

    async def install(self, project: str, requirement: str, not_after: datetime | None, wall_s: float) -> Path:
        """One more package. The version there was before stays, also when this fails. Raises BenchRefused, ScriptFailure, OSError."""
        age = ("--exclude-newer", not_after.isoformat()) if not_after else ()
        return await self._next(project, ("install", *age, requirement), wall_s)

    async def install_lock(self, project: str, lock: str) -> Path:
        """What a lock with hashes says, and nothing else. Raises as `install`."""
        file = self._folder / project / "requirements.lock"
        await finished(file.write_text, lock)
        return await self._next(project, ("sync", "--require-hashes", str(_LOCK)), _LOCK_S, (Mount(file, _LOCK),))

    async def _next(self, project: str, how: Sequence[str], wall_s: float, mounts: tuple[Mount, ...] = ()) -> Path:
        async with self._turn(project):
            before = await asyncio.to_thread(self.newest, project)
            if before is None:
                raise BenchRefused(f"There is no project {project!r}. Make it with create_uv_project.")
            part = await finished(self._part, project)
            target = Path(environment_of(project))
            own = Mount(part, target, writable=True)
            try:
                # By programs in the sandbox: what was installed is other people's, and so are its links and rights.
                await self._step(project, Run(("/bin/cp", "-aT", str(_FROM), str(target)), target, _STEP_S, (own, Mount(before, _FROM))))
                await self._step(project, Run(("/bin/chmod", "-R", "u+w", str(target)), target, _STEP_S, (own,)))
                await self._step(project, await self._uv(target, how, wall_s, (own, *mounts)))
                return await finished(self._finish, part, project)
            finally:
                await finished(discard, part)

    async def _uv(self, target: Path, how: Sequence[str], wall_s: float, mounts: tuple[Mount, ...]) -> Run:
        # What is built is other people's code, which would see the password in the address of the index.
        without_builds = ("--no-build",) if (await self._parts.index()).passwords else ()
        verb, *more = how
        uv = (str(UV), "pip", verb, "--compile-bytecode", "--python", str(target / "bin/python"))
        # The task's own: what an installer writes there, another task's must not read.
        cache = Mount(await asyncio.to_thread(self._cache), _CACHE, writable=True)
        return Run((*uv, *without_builds, *more), target, wall_s, (*mounts, cache), {"UV_CACHE_DIR": str(_CACHE)}, reaches_index=True)

    async def _step(self, project: str, run: Run) -> None:
        done = await self._parts.run(project, run, self._logs)
        if done.code != 0 or done.cut or done.ending.disk_full:
            raise BenchRefused(f"{_why(done)} The environment is as it was before.\n{_told(done)}".strip())

    def _turn(self, project: str):
        folder = self._folder / project
        folder.mkdir(parents=True, exist_ok=True)
        return locked(folder / "turn.lock")

    def _cache(self) -> Path:
        cache = self._folder / ".cache"
        cache.mkdir(mode=0o755, exist_ok=True)
        return cache

    def _part(self, project: str) -> Path:
        part = self._folder / project / _PART
        remove(part)
        part.mkdir(mode=0o755)
        return part

    def _finish(self, part: Path, project: str) -> Path:
        versions = self._versions(project)
        # A folder that one may not write to cannot be moved.
        seal(part)
        part.chmod(0o755)
        target = part.with_name(str(int(versions[-1].name) + 1 if versions else 1))
        part.rename(target)
        for old in versions[: -(_KEPT - 1)]:
            discard(old)
        return target

    def _versions(self, project: str) -> list[Path]:
        folder = self._folder / project
        found = [path for path in folder.iterdir() if path.name.isdecimal()] if folder.is_dir() else []
        return sorted(found, key=lambda path: int(path.name))


def _why(done: Execution) -> str:
    if done.cut is not None:
        return "It took too long." if done.cut == "time" else "It wrote too much."
    return too_much(done.ending) or f"It failed with exit code {done.code}."


def _told(done: Execution) -> str:
    return (done.stderr or done.stdout)[-_TOLD:].decode(errors="replace").strip()
