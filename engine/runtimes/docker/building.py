"""Containers to build tools in: writable, found again after a restart, without a network: the package index is their only way out."""

import asyncio
import contextlib
import itertools
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from engine.runtimes.docker.carried import INSIDE, Carried
from engine.runtimes.docker.commands import Executed, begin, execute
from engine.runtimes.docker.engine import Api, Document, EngineFailure, Missing
from engine.runtimes.docker.images import Images, failure_of
from engine.runtimes.docker.labels import OWN_IMAGES, STATE, Kind, Marks
from engine.runtimes.docker.limits import ContainerLimits, bytes_of
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving import created, entered, entry, hardened, inspected, removed
from engine.runtimes.docker.volumes import volume_mounts
from engine.runtimes.docker.wishes import Note, Wishes
from engine.runtimes.failures import StartFailed
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import Progress
from engine.runtimes.sandbox.egress import Opening, Way
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.containers import ContainerInfo, ContainerStatus
from toolagent.contracts.sandbox import SandboxGrant, SandboxLimits
from toolagent.core.sandbox import granted

__all__ = ["BuildContainers", "ContainerBook"]

T = TypeVar("T")

_COMMITTED = f"{OWN_IMAGES}rebuilt"
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID")
"""What package managers need of root."""
_NANO = 1_000_000_000
_TIMED_OUT = 124
_MARK = "TOOL_AGENT_COMMAND"
_MARGIN_S = 15.0
_LOGS = "/var/log/tool-agent"
_TTL_LOOKS = 4
_LONGEST_LOOK_S = 30.0


class ContainerBook(Protocol):
    """Where containers are remembered."""

    async def note(self, container: ContainerInfo) -> None: ...


@dataclass(slots=True)
class _Site:
    """A build container in use. `used` is by the monotonic clock."""

    info: ContainerInfo
    name: str
    wishes: Wishes
    way: AsyncExitStack
    used: float
    running: int = 0


class BuildContainers:
    """Those of one state directory. Failures are StartFailed. To be closed with `close`, which leaves the containers."""

    def __init__(self, parts: DockerParts, book: ContainerBook, projects: Projects | None = None) -> None:
        self._settings, self._engine, self._egress, self._book = parts.settings, parts.engine, parts.egress, book
        self._parts, self._ports = parts, parts.ports
        self._images = Images(parts, projects)
        self._sites: dict[str, _Site] = {}
        self._timer: asyncio.Task[None] | None = None
        self._count = itertools.count(1)

    async def create(self, wishes: Wishes, progress: Progress) -> ContainerInfo:
        """Raises StartFailed."""
        image = await self._images.named(wishes.image or self._settings.base_image, progress)
        return (await self._make(wishes, wishes.image or self._settings.base_image, image.image_id)).info

    async def run(self, container_id: str, command: Sequence[str], timeout_s: float) -> Executed:
        """Run a command and wait for it, at most so many seconds. Raises StartFailed when the container is gone."""
        site = self._known(container_id)
        most, mark = self._settings.policy.defaults.output_bytes or 0, secrets.token_hex(8)
        longest = timeout_s + _MARGIN_S
        work = asyncio.ensure_future(self._asked(site.name, lambda api: execute(api, site.name, [*command], most, {_MARK: mark}), longest))
        site.running += 1
        try:
            done, _ = await asyncio.wait({work}, timeout=timeout_s)
            if not done:
                await self._end(site, mark)
                return replace(await work, exit_code=_TIMED_OUT)
            return await work
        except asyncio.CancelledError:
            await asyncio.shield(self._end(site, mark))
            raise
        finally:
            site.running -= 1
            site.used = time.monotonic()

    async def _end(self, site: _Site, mark: str) -> None:
        """A command, and all that it started."""
        argv = (await self._carried()).argv("end", f"{_MARK}={mark}")
        await self._asked(site.name, lambda api: execute(api, site.name, argv, 0, {}))

    async def run_in_background(self, container_id: str, command: Sequence[str]) -> str:
        """Start a command that goes on by itself; the file in the container that its output goes to. Raises StartFailed."""
        site, carried = await self._site(container_id), await self._carried()
        log = f"{_LOGS}/{next(self._count)}-{secrets.token_hex(3)}.log"
        argv = carried.argv("log", log, *command)
        await self._asked(site.name, lambda api: begin(api, site.name, argv))
        site.used = time.monotonic()
        return log

    async def read_log(self, container_id: str, log_file: str) -> str:
        """What a command in the background has said so far. Raises StartFailed."""
        return (await self.run(container_id, ["cat", log_file], _MARGIN_S)).stdout

    async def logs(self, container_id: str, lines: int = 100) -> str:
        """The end of what the container's own first process said. Raises StartFailed."""
        site = await self._site(container_id)
        said = await self._asked(site.name, lambda api: api.logs(site.name, stdout=True, stderr=True, tail=lines))
        return said.decode(errors="replace")

    async def rebuild(
        self, container_id: str, ports: tuple[int, ...], *, mem_limit: str | None = None, nano_cpus: int | None = None
    ) -> ContainerInfo:
        """The same files in a new container with these ports; the old one goes once the new one runs. Raises StartFailed."""
        site = await self._site(container_id)
        wishes = replace(
            site.wishes, ports=ports, mem_limit=mem_limit or site.wishes.mem_limit, nano_cpus=nano_cpus or site.wishes.nano_cpus
        )
        tag = secrets.token_hex(6)
        kept = await self._asked(
            site.name,
            lambda api: api.commit(site.name, _COMMITTED, tag),
            self._settings.build_timeout_s,
        )
        try:
            made = await self._make(wishes, site.info.image, str(kept["Id"]))
        except StartFailed:
            await self._without_image(f"{_COMMITTED}:{tag}")
            raise
        await self.destroy(container_id)
        return made.info

    async def destroy(self, container_id: str) -> ContainerInfo:
        """Raises StartFailed when it was none of ours."""
        site = await self._site(container_id)
        self._sites.pop(site.info.container_id, None)
        await site.way.aclose()
        image = await self._gone(site.name)
        if image is not None:
            await self._without_image(image)
        gone = site.info.model_copy(update={"status": ContainerStatus.DESTROYED, "destroyed_at": datetime.now(UTC)})
        await self._book.note(gone)
        return gone

    async def find(self) -> tuple[ContainerInfo, ...]:
        """Take on what workers of this state directory left. Those that ended are started again. Raises StartFailed."""
        wanted = {"label": f"{STATE}={self._settings.owner.state}"}
        for one in await self._asked("", lambda api: api.containers(all=True, filters=wanted)):
            marks = Marks.read(one.get("Labels") or {})
            if marks is not None and marks.kind is Kind.BUILD and one["Id"] not in self._sites:
                with contextlib.suppress(StartFailed):  # one that cannot be had back is no reason to do without the others
                    await self._take_on(str(one["Id"]), marks)
        for image in await self._asked("", lambda api: api.images(filters=wanted)):
            for tag in image.get("RepoTags") or ():
                if tag.startswith(_COMMITTED):
                    await self._without_image(tag)
        return tuple(site.info for site in self._sites.values())

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for site in self._sites.values():
            await site.way.aclose()

    async def _make(self, wishes: Wishes, image: str, image_id: str) -> _Site:
        settings = self._settings
        name = f"tool-agent-build-{wishes.tool_id.replace(':', '-')[:40]}-{secrets.token_hex(4)}"
        carried = await self._carried()
        mounts = await asyncio.to_thread(volume_mounts, dict(wishes.volumes), wishes.tool_id, settings)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._gone, name)
            way, opened, published = await self._opened(name, wishes, {})
            stack.push_async_callback(opened.aclose)
            note = Note(wishes, image, published)
            config = self._config(note, name, image_id, way, carried, mounts)
            container = await self._started(config, name)
            info = self._info(container, note, published, datetime.now(UTC))
            await self._book.note(info)
            stack.pop_all()
        return self._kept(_Site(info, name, wishes, opened, time.monotonic()))

    def _info(self, container: str, note: Note, published: Mapping[int, int], created_at: datetime) -> ContainerInfo:
        wishes = note.wishes
        return ContainerInfo(
            container_id=container,
            tool_id=wishes.tool_id,
            image=note.image,
            port_mapping={str(port): outside for port, outside in published.items()},
            volumes=dict(wishes.volumes),
            mem_limit=wishes.mem_limit or self._settings.mem_limit,
            nano_cpus=wishes.nano_cpus or self._settings.nano_cpus,
            use_gpu=wishes.use_gpu,
            gpu_count=wishes.gpu_count,
            created_at=created_at,
        )

    def _kept(self, site: _Site) -> _Site:
        self._sites[site.info.container_id] = site
        if self._timer is None:
            self._timer = asyncio.create_task(self._retire_unused(), name="build container ttl")
        return site

    async def _opened(self, name: str, wishes: Wishes, before: Mapping[int, int]) -> tuple[Way, AsyncExitStack, dict[int, int]]:
        """The ways into and out of the container, what closes our end of them, and its ports here: those of `before` if they are free."""
        index = await self._parts.known_index()
        hosts, _ = granted(SandboxGrant(hosts=wishes.hosts), self._settings.policy)
        opening = Opening(hosts=(*index, *hosts.hosts), private_hosts=index, others=wishes.ports, lasting=True, python=INSIDE)
        async with AsyncExitStack() as stack:
            try:
                way = await stack.enter_async_context(self._egress.open(name, opening))
                stack.push_async_callback(self._ports.close, name)
                published = await self._ports.open(name, way.others, self._settings.port_start, before, lambda: self._touch(name))
            except OSError as error:
                raise StartFailed(ErrorType.UNAVAILABLE, f"The ways into a build container cannot be opened: {error}") from error
            return way, stack.pop_all(), published
        raise AssertionError("The block returns or raises.")

    def _touch(self, name: str) -> None:
        """Who is called by its ports is in use."""
        for site in self._sites.values():
            if site.name == name:
                site.used = time.monotonic()

    def _config(self, note: Note, name: str, image: str, way: Way, carried: Carried, mounts: list[Document]) -> Document:
        settings = self._settings
        wishes = note.wishes
        marks = Marks(Kind.BUILD, name, wishes.tool_id, "", settings.host, settings.owner.mark, str(note))
        idle = carried.argv("idle")
        host: Document = {
            **hardened(self._limits(wishes)),
            "CapAdd": [*_CAPABILITIES],
            "Mounts": [*entered(way, carried), *mounts],
        }
        return {
            "Image": image,
            "Entrypoint": [*entry(way, carried), *idle] if way.prefix else idle,
            "Cmd": [],
            "User": "0:0",
            "WorkingDir": "/",
            "Env": [f"{name}={value}" for name, value in {"HOME": "/root", **wishes.environment, **way.environment}.items()],
            "Labels": {**settings.origin.labels, **marks.labels},
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": host,
        }

    def _limits(self, wishes: Wishes) -> ContainerLimits:
        own = SandboxLimits(
            memory_bytes=bytes_of(wishes.mem_limit or self._settings.mem_limit),
            cpus=(wishes.nano_cpus or self._settings.nano_cpus) / _NANO,
        )
        policy = self._settings.policy
        return ContainerLimits.within(own.or_else(policy.defaults), policy.ceilings, wishes.gpu_count if wishes.use_gpu else 0)

    async def _started(self, config: Document, name: str) -> str:
        """The container's id."""
        try:
            container = await created(self._engine, config, name)
            await self._engine.ask(lambda api: api.start(container))
        except EngineFailure as error:
            raise failure_of(error, "container", name) from error
        return container

    async def _take_on(self, container: str, marks: Marks) -> None:
        found = await self._asked(container, lambda api: api.inspect_container(container))
        note = Note.read(marks.source) or Note(Wishes(marks.tool), str(found["Image"]), {})
        _, opened, published = await self._opened(marks.name, note.wishes, note.published)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(opened.aclose)
            if found["State"]["Status"] != "running":
                await self._asked(container, lambda api: api.start(container))
            created_at = datetime.fromisoformat(str(found["Created"])[:19]).replace(tzinfo=UTC)
            info = self._info(container, note, published, created_at)
            if published != note.published:
                await self._book.note(info)  # another program has taken a port meanwhile
            stack.pop_all()
        self._kept(_Site(info, marks.name, note.wishes, opened, time.monotonic()))

    def _known(self, container_id: str) -> _Site:
        """By its id or the beginning of it. Raises StartFailed."""
        found = [site for known, site in self._sites.items() if container_id and known.startswith(container_id)]
        if len(found) == 1:
            return found[0]
        raise _is_gone(container_id)

    async def _site(self, container_id: str) -> _Site:
        """One that the engine still has. Raises StartFailed."""
        site = self._known(container_id)
        try:
            await inspected(self._engine, site.name)
        except Missing as error:
            raise _is_gone(container_id) from error
        except EngineFailure as error:
            raise failure_of(error, "container", container_id) from error
        return site

    async def _gone(self, name: str) -> str | None:
        """Remove it; the image that was made of its predecessor, if there was one."""
        with contextlib.suppress(EngineFailure):
            image = str((await inspected(self._engine, name))["Config"]["Image"])
            await removed(self._engine, name)
            await asyncio.to_thread(self._egress.forget, name)
            tags: list[str] = (await self._engine.ask(lambda api: api.inspect_image(image))).get("RepoTags") or []
            return next((tag for tag in tags if tag.startswith(_COMMITTED)), None)
        return None

    async def _without_image(self, image: str) -> None:
        with contextlib.suppress(EngineFailure):  # another container still uses it
            await self._engine.ask(lambda api: api.remove_image(image))

    async def _carried(self) -> Carried:
        return await Carried.put_together(self._settings.state / "carried")

    async def _asked(self, name: str, what: Callable[[Api], T], timeout_s: float | None = None) -> T:
        """Raises StartFailed."""
        try:
            return await self._engine.ask(what, timeout_s)
        except EngineFailure as error:
            raise failure_of(error, "container", name) from error

    async def _retire_unused(self) -> None:
        ttl = self._settings.ttl_s
        while True:
            await asyncio.sleep(min(ttl / _TTL_LOOKS, _LONGEST_LOOK_S))
            for site in list(self._sites.values()):
                if not site.running and time.monotonic() - site.used > ttl:
                    with contextlib.suppress(StartFailed):
                        await self.destroy(site.info.container_id)


def _is_gone(container_id: str) -> StartFailed:
    message = f"There is no build container {container_id!r} here: it was destroyed, or not used for too long. Make a new one."
    return StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"container_id": container_id})
