"""The environments of a task's projects: each successful installation makes a new version; the newest is in use."""

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
"""Versions of an environment that are kept, because a background program may run with an earlier one."""

_STEP_S, _LOCK_S = 60.0, 300.0
_TOLD = 4_000
_FROM = Path("/from")
_CACHE = Path("/cache")
_LOCK = Path("/requirements.lock")
_PART = "part"
_FRESH = "cache"
_INSTALLED = re.compile(r"^(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)\.dist-info$")


class ProjectEnvironments:
    """The environments of one task, as `<project>/<number>` in `folder`. A numbered version is complete and never changes.

    A version is made in the sandbox as `part`, from a copy of the one before. The next installation removes the part of a crashed one.
    """

    def __init__(self, parts: BenchParts, folder: Path, logs: Path) -> None:
        self._parts, self._folder, self._logs = parts, folder, logs

    def newest(self, project: str) -> Path | None:
        """Blocks."""
        versions = self._versions(project)
        return versions[-1] if versions else None

    def installed(self, project: str) -> dict[str, str]:
        """The installed versions by package name, as in folder names (`_` for `-`). Blocks."""
        newest = self.newest(project)
        found = (path.name for path in newest.glob("lib/python*/site-packages/*.dist-info")) if newest else ()
        return {match["name"].lower(): match["version"] for match in map(_INSTALLED.match, found) if match}

    async def ensure(self, project: str) -> Path:
        """The newest environment, or a new bare one. Raises BenchRefused, ScriptFailure, OSError."""
        async with self._turn(project):
            newest = await asyncio.to_thread(self.newest, project)
            if newest is not None:
                return newest
            part = await finished(self._part, project)
            await finished(remove, part.with_name(_FRESH))
            target, uv = str(environment_of(project)), str(UV)
            python = str(self._parts.programs.python.file)
            # Relocatable, because without a view of its own the sandbox makes it at one place and uses it at another.
            made = (uv, "venv", "--relocatable", "--no-project", "--allow-existing", "--python", python, target)
            # Not the installers' cache, because we write to this one and must not follow links in it.
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
        """Installs a package. The version before stays, also after a failure. Raises BenchRefused, ScriptFailure, OSError."""
        age = ("--exclude-newer", not_after.isoformat()) if not_after else ()
        return await self._next(project, ("install", *age, requirement), wall_s)

    async def install_lock(self, project: str, lock: str) -> Path:
        """Installs exactly the packages of a lock with hashes. Raises like `install`."""
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
                # By programs in the sandbox, because links and rights of installed files are untrusted.
                await self._step(project, Run(("/bin/cp", "-aT", str(_FROM), str(target)), target, _STEP_S, (own, Mount(before, _FROM))))
                await self._step(project, Run(("/bin/chmod", "-R", "u+w", str(target)), target, _STEP_S, (own,)))
                await self._step(project, await self._uv(target, how, wall_s, (own, *mounts)))
                return await finished(self._finish, part, project)
            finally:
                await finished(discard, part)

    async def _uv(self, target: Path, how: Sequence[str], wall_s: float, mounts: tuple[Mount, ...]) -> Run:
        # Builds are untrusted code, which would see the password in the address of the index.
        without_builds = ("--no-build",) if (await self._parts.index()).passwords else ()
        verb, *more = how
        uv = (str(UV), "pip", verb, "--compile-bytecode", "--python", str(target / "bin/python"))
        # The task's own cache, because other tasks must not read what its installers write.
        cache = Mount(await asyncio.to_thread(self._cache), _CACHE, writable=True)
        return Run((*uv, *without_builds, *more), target, wall_s, (*mounts, cache), {"UV_CACHE_DIR": str(_CACHE)}, reaches_index=True)

    async def _step(self, project: str, run: Run) -> None:
        done = await self._parts.run(project, run, self._logs)
        if done.code != 0 or done.cut or done.ending.disk_full:
            told = (done.stderr or done.stdout)[-_TOLD:].decode(errors="replace").strip()
            raise BenchRefused(f"{_why(done)} The environment is as it was before.\n{told}".strip())

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
        # A folder without write permission cannot be moved.
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
