"""The containers of a task.

Each is found by the use that made it; the task cannot name others.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engine.disk.leftovers import discard
from engine.making.workbench.finishing import finished
from engine.making.workbench.notes import use_digest, write_whole
from engine.making.workbench.places import WORK, Area
from engine.making.workbench.refusal import BenchRefused
from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.wishes import Wishes
from engine.runtimes.docker_engine.commands import Executed
from engine.runtimes.docker_engine.volumes import place_inside
from engine.runtimes.runtime import Progress
from toolagent_service.contracts.containers import ContainerInfo

_SHELL = "/bin/sh"
_MOST_AT_ONCE = 4
_OWN_NAME = r"letters, digits, '.', '_' and '-'"


class BenchContainers:
    """Marks each container with the task and the use that made it (`<task>:<use>`), so that a new attempt finds a dead one's container."""

    def __init__(self, task_id: str, folder: Path, builds: BuildContainers | str) -> None:
        self._task_id, self._folder, self._builds = task_id, folder, builds
        self._creating = asyncio.Lock()

    async def create(self, wishes: Wishes, use: str, progress: Progress) -> ContainerInfo:
        """Sets `wishes.tool_id`. The container sees the task's files at `/work`, read-only. Raises BenchRefused, StartFailed."""
        builds, mark = self._engine, f"{self._task_id}:u{use_digest(use)[:20]}"
        async with self._creating:
            if made := next((one for one in self.own if one.tool_id == mark), None):
                return made
            _require_volumes(wishes.volumes)
            if len(self.own) >= _MOST_AT_ONCE:
                raise BenchRefused(f"This task has {len(self.own)} containers, which is the most. End one with destroy_docker_env first.")
            shown = {str(self._folder / Area.WORK): str(WORK)}
            return await builds.create(replace(wishes, tool_id=mark, shown=shown), progress)

    async def run(self, container_id: str, command: str, wall_s: float) -> Executed:
        """Runs the command by a shell of the container. Raises BenchRefused, StartFailed."""
        return await self._engine.run(self._own(container_id).container_id, (_SHELL, "-c", _text(command)), wall_s)

    async def start(self, container_id: str, command: str) -> str:
        """Starts a background command; returns its log in the container. Raises BenchRefused, StartFailed."""
        return await self._engine.run_in_background(self._own(container_id).container_id, (_SHELL, "-c", _text(command)))

    async def rebuild(
        self, container_id: str, ports: tuple[int, ...], use: str, *, mem_limit: str | None, nano_cpus: int | None
    ) -> ContainerInfo:
        """Makes the container anew with other ports and the same files. Raises BenchRefused, StartFailed.

        The new one has the mark of the old. An attempt that died between leaves both; then the new one is removed first.
        """
        note = self._folder / "uses" / f"rebuild-{use_digest(use)}.json"
        before = _noted(note)
        if before is None:
            own = self._own(container_id)
            before = {"id": own.container_id, "mark": own.tool_id}
            write_whole(note, json.dumps(before).encode())
        marked = [one for one in self._engine.known if one.tool_id == before["mark"]]
        others = [one for one in marked if one.container_id != before["id"]]
        if not marked:
            raise self._unknown(container_id)
        if len(others) == len(marked):
            return others[0]
        for one in others:
            await self._engine.destroy(one.container_id)
        return await self._engine.rebuild(before["id"], ports, mem_limit=mem_limit, nano_cpus=nano_cpus)

    async def destroy(self, container_id: str, use: str) -> None:
        """Raises BenchRefused, StartFailed."""
        note = self._folder / "uses" / f"destroy-{use_digest(use)}.json"
        if (before := _noted(note)) is None:
            before = {"id": self._own(container_id).container_id}
            write_whole(note, json.dumps(before).encode())
        if any(one.container_id == before["id"] for one in self.own):
            await self._engine.destroy(before["id"])

    def require(self, container_id: str) -> None:
        """Raises BenchRefused if the task has no such container."""
        self._own(container_id)

    async def remove(self) -> None:
        """Removes all containers of the task and their folders. Raises StartFailed."""
        if isinstance(self._builds, str):
            return
        for one in self.own:
            await self._builds.destroy(one.container_id)
        await finished(_remove_all, self._builds.volumes, f"{self._task_id}_*")

    @property
    def own(self) -> tuple[ContainerInfo, ...]:
        """The task's containers."""
        if isinstance(self._builds, str):
            return ()
        return tuple(one for one in self._builds.known if one.tool_id.startswith(f"{self._task_id}:"))

    @property
    def _engine(self) -> BuildContainers:
        if isinstance(self._builds, str):
            raise BenchRefused(f"There are no containers here: {self._builds} Make the tool with create_uv_project instead.")
        return self._builds

    def _own(self, container_id: str) -> ContainerInfo:
        _ = self._engine
        found = [one for one in self.own if len(container_id) >= 12 and one.container_id.startswith(container_id)]
        if len(found) != 1:
            raise self._unknown(container_id)
        return found[0]

    def _unknown(self, container_id: str) -> BenchRefused:
        known = ", ".join(one.container_id[:12] for one in self.own)
        told = f"There are: {known}." if known else "There is none: it was destroyed, or was not used for too long."
        return BenchRefused(f"This task has no container {container_id[:80]!r}. {told} Make one with create_docker_env.")


def _text(command: str) -> str:
    if not command.strip() or "\0" in command:
        raise BenchRefused("The command is empty, or holds a NUL character.")
    return command


def _require_volumes(volumes: Mapping[str, str]) -> None:
    for name, target in volumes.items():
        if "/" in name or name in (".", ".."):
            raise BenchRefused(
                f"The volume {name!r} is a path of the machine. Give a name ({_OWN_NAME}) for a folder of the container's own; "
                f"the files of the task are in every container at {WORK}, read-only."
            )
        place = place_inside(target)
        if place is None:
            raise BenchRefused(f"The volume {name!r} cannot be at {target[:200]!a}: give a folder of the container, with its whole path.")
        if place.is_relative_to(WORK) or WORK.is_relative_to(place):
            raise BenchRefused(f"The volume {name!r} cannot be at {target!r}: the files of the task are at {WORK}.")


def _remove_all(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        discard(path)


def _noted(note: Path) -> dict[str, str] | None:
    return json.loads(note.read_text(encoding="utf-8")) if note.is_file() else None
