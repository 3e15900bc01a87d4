"""The sandbox level `docker`: each run is a container with the same files as at the other levels, isolated by the engine."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import structlog

from engine.runtimes.docker_engine.binds import bind
from engine.runtimes.docker_engine.empty_image import empty_image
from engine.runtimes.docker_engine.engine import Api, Document, Engine, EngineFailure, Missing
from engine.runtimes.docker_engine.labels import STATE, Kind, Marks, Origin
from engine.runtimes.docker_engine.limits import ContainerLimits
from engine.runtimes.docker_engine.seals import Seals
from engine.runtimes.docker_engine.serving_containers import created, hardened
from engine.runtimes.process.box import PYTHON, Box, Ending, LevelUnavailable, Mount, Prepared
from engine.runtimes.process.ownership import Owner
from engine.runtimes.sandbox import inside
from engine.runtimes.sandbox.identities import Identities, Taken, differences_of
from engine.runtimes.sandbox.levels import confine
from engine.runtimes.sandbox.levels.machine_paths import opened
from engine.runtimes.sandbox.levels.seccomp import filter_fd
from engine.runtimes.sandbox.levels.system_files import SystemFiles
from engine.runtimes.sandbox.levels.watch import Watch
from toolagent.contracts.sandbox import Difference, SandboxLevel

_TMP = "/tmp"  # noqa: S108 - the container's own
_FIRST = Path(inside.__file__)
_FIRST_INSIDE = Path("/.tool-agent", _FIRST.name)
_FILTERING = Path(confine.__file__)
_FILTERING_INSIDE = Path("/.tool-agent", _FILTERING.name)
_FILTER_INSIDE = Path("/.tool-agent/filter")

_NEVER = "0001-"
"""How the engine's start time begins for a container that never started."""
_ASKED_S = 15.0
_AGAIN_S = 1.0
_SLOWEST_AGAIN_S = 60.0
_MASKED = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys",
)
"""Docker's own list, and all of /sys, which describes the machine."""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_WANTED = {"MemoryLimit": "memory", "PidsLimit": "pids", "CpuCfsQuota": "cpu"}


class ContainerLevel:
    """`identities` are the ordinary users of payloads if the worker is root; without them, payloads run as the worker's user."""

    level = SandboxLevel.DOCKER
    has_own_network = True

    def __init__(self, etc: Path, engine: Engine, owner: Owner, identities: Identities | None) -> None:
        self._engine, self._owner, self._identities = engine, owner, identities
        self._origin, self._seals = Origin.of(owner.state, etc), Seals.of(etc.parent)
        self._environment = {"PATH": os.defpath, "HOME": "/nonexistent"}
        self._program = shutil.which("docker")
        self._system = SystemFiles.write(etc, identities.uids if identities else (os.getuid(),))
        self._filter = _written_filter(etc / "filter")
        self._image: str | None = None
        self._lacking: tuple[Difference, ...] = ()
        self._removing: set[asyncio.Task[None]] = set()

    def differences(self) -> tuple[Difference, ...]:
        return (*self._lacking, *differences_of(self._identities))

    async def prepare(self, argv: Sequence[str], box: Box) -> Prepared:
        if self._program is None:
            raise LevelUnavailable("there is no program `docker`, which carries a container's streams (Debian: docker.io)")
        taken: Taken | None = None
        try:
            image = self._image or await self._engine.ask(self._made_image, _ASKED_S)
            taken = await asyncio.to_thread(self._handed_over, box)
            user = f"{taken.identity.uid}:{taken.identity.gid}" if taken else f"{os.getuid()}:{os.getgid()}"
            container = await created(self._engine, self._config(image, argv, box, user, await self._engine.processors()), box.name)
        except (EngineFailure, OSError) as error:
            if taken:
                taken.release()
            raise LevelUnavailable(f"a container could not be made: {error}") from error
        command = [self._program, "start", "--attach", "--interactive", container]
        return _Run(self._engine, container, command, self._environment, box, self._left, taken)

    async def sweep(self) -> tuple[str, ...]:
        try:
            return await self._engine.ask(self._swept)
        except EngineFailure:
            return ()  # without an engine there are no containers

    def _left(self, container: str, name: str, taken: Taken | None) -> None:
        """Retry the removal of a container whose run is over, until it is gone."""
        removing = asyncio.create_task(self._removed(container, name, taken), name=f"remove {name}")
        self._removing.add(removing)
        removing.add_done_callback(self._removing.discard)

    async def _removed(self, container: str, name: str, taken: Taken | None) -> None:
        pause = _AGAIN_S
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 2, _SLOWEST_AGAIN_S)
            try:
                with contextlib.suppress(Missing):
                    await self._engine.ask(lambda api: api.remove_container(container, v=True, force=True))
            except EngineFailure as error:
                _log.warning("container_not_removed", name=name, reason=str(error))
            else:
                _log.info("removed_leftover_container", name=name)
                if taken:
                    taken.release()
                return

    def _handed_over(self, box: Box) -> Taken | None:
        for mount in box.mounts:
            if mount.is_machines:
                os.close(opened(mount.source))  # the engine follows links
        return self._identities.of(box) if self._identities else None

    def _config(self, image: str, argv: Sequence[str], box: Box, user: str, processors: int) -> Document:
        limits = ContainerLimits.within(box.limits, box.limits, processors)
        marks = Marks(Kind.BOX, box.name, "", "", "", self._owner.mark)
        ours = [Mount(_FIRST, _FIRST_INSIDE)]
        filtering: list[str] = []
        if self._filter is not None:
            # The engine's own filter is weaker, and differs by version.
            ours += [Mount(_FILTERING, _FILTERING_INSIDE), Mount(self._filter, _FILTER_INSIDE)]
            filtering = [PYTHON, "-I", "-S", str(_FILTERING_INSIDE), "--filtered", str(_FILTER_INSIDE)]
        mounts = (*self._system.mounts, *ours, *box.mounts)
        host: Document = {
            **hardened(limits),
            "ReadonlyRootfs": True,
            "Tmpfs": limits.scratch(_TMP),
            "Mounts": [bind(mount.source, str(mount.target), writable=mount.writable) for mount in mounts],
            "MaskedPaths": _MASKED,
            "LogConfig": {"Type": "none", "Config": {}},
        }
        return {
            "Image": image,
            # The first process must handle signals, as the kernel ignores them by default for it, and must reap orphans.
            "Entrypoint": [*filtering, PYTHON, "-I", "-S", str(_FIRST_INSIDE), "--", *argv],
            "Cmd": [],
            "User": user,
            "WorkingDir": str(box.folder),
            # By this mark the guardian ends it if the worker is killed.
            "Env": [f"{name}={value}" for name, value in {**self._owner.environment, **box.environment}.items()],
            "Labels": self._seals.on_container(self._origin, marks),
            "Hostname": "sandbox",
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "OpenStdin": True,
            "StdinOnce": True,
            "HostConfig": host,
        }

    def _made_image(self, api: Api) -> str:
        """The image is empty: all files come from this machine by mounts."""
        image = empty_image(self._engine, api, self._seals.on_image(self._origin), self._system.links)
        self._lacking = tuple(_lacking(api.info()))
        self._image = image
        return image

    def _swept(self, api: Api) -> tuple[str, ...]:
        gone: list[str] = []
        listed = api.containers(all=True, filters={"label": f"{STATE}={self._owner.state}"})
        for container, marks, _ in self._seals.ours(listed, Kind.BOX):
            if marks.is_orphan:
                with contextlib.suppress(Missing):
                    self._engine.in_this_thread(lambda api, container=container: api.remove_container(container, v=True, force=True))
                gone.append(marks.name)
        return tuple(sorted(gone))


class _Run:
    """A created container, which the `docker` command line starts and attaches to."""

    pass_fds: Sequence[int] = ()
    ends_with_us = False

    def __init__(
        self,
        engine: Engine,
        container: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        box: Box,
        left: Callable[[str, str, Taken | None], None],
        taken: Taken | None,
    ) -> None:
        self._taken = taken
        self._engine, self._container, self._name, self._left = engine, container, box.name, left
        self.argv, self.environment = argv, environment
        self._pid: int | None = None
        watched = [mount.source for mount in box.mounts if mount.writable]
        self._watch = Watch(watched, box.limits, memory=False, kill=lambda: self._signal(signal.SIGKILL))

    async def begin(self, pid: int) -> None:
        self._pid = pid
        self._watch.begin(self._first)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    async def end(self) -> Ending:
        await self._watch.end()
        ending = Ending()
        try:
            with contextlib.suppress(Missing):
                ending = await self._engine.ask(self._ended)
        except EngineFailure as error:
            _log.warning("container_not_removed", name=self._name, reason=str(error))
            self._left(self._container, self._name, self._taken)
            raise OSError(f"the container {self._container[:12]} could not be removed: {error}") from error
        if self._taken:
            self._taken.release()  # only now: until then it could still run
        return self._watch.ending(ending)

    def _first(self) -> int | None:
        try:
            return int(self._engine.in_this_thread(lambda api: api.inspect_container(self._container))["State"]["Pid"]) or None
        except EngineFailure:
            return None

    def _ended(self, api: Api) -> Ending:
        try:
            state: Document = api.inspect_container(self._container)["State"]
            return Ending(out_of_memory=bool(state.get("OOMKilled")), was_set_up=not str(state.get("StartedAt")).startswith(_NEVER))
        finally:
            api.remove_container(self._container, v=True, force=True)

    def _signal(self, number: signal.Signals) -> None:
        """The command line passes signals on. It cannot pass SIGKILL; then `end` removes the container."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)


def _written_filter(file: Path) -> Path | None:
    """None without libseccomp."""
    try:
        with os.fdopen(filter_fd(), "rb") as rules:
            file.write_bytes(rules.read())
    except OSError:
        return None
    file.chmod(0o644)
    return file


def _lacking(info: Document) -> Sequence[Difference]:
    missing = [
        Difference(item=f"cgroup.{name}", reason="The engine says that it cannot.") for key, name in _WANTED.items() if not info.get(key)
    ]
    if not any("seccomp" in str(option) for option in info.get("SecurityOptions") or ()):
        missing.append(Difference(item="seccomp", reason="The engine has no filter of system calls."))
    return missing
