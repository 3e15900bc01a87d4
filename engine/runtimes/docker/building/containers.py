"""Build containers: writable, found again after a restart, and without a network except for the package index and allowed hosts."""

import asyncio
import contextlib
import itertools
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from engine.runtimes.docker.book import gone
from engine.runtimes.docker.building.build_audit import BuildAudit, told_of
from engine.runtimes.docker.building.build_shape import build_config, build_info, limits_of
from engine.runtimes.docker.building.images import Images, usable
from engine.runtimes.docker.building.index_variables import index_variables
from engine.runtimes.docker.building.wishes import Note, Notes, Wishes
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.binds import bind
from engine.runtimes.docker_engine.carried import INSIDE, Carried
from engine.runtimes.docker_engine.commands import Command, Executed, begin, run_within
from engine.runtimes.docker_engine.engine import Api, Document, EngineFailure, Missing
from engine.runtimes.docker_engine.image import Image
from engine.runtimes.docker_engine.labels import OWN_IMAGES, Kind, Marks
from engine.runtimes.docker_engine.leftovers import own_containers, own_images
from engine.runtimes.docker_engine.limits import ContainerLimits
from engine.runtimes.docker_engine.serving_containers import created, inspected, moment_of, removed
from engine.runtimes.docker_engine.volumes import image_mounts, volume_mounts
from engine.runtimes.environments.indexes import Index
from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Progress
from engine.runtimes.sandbox.egress import Opening, SandboxNetwork
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sandbox import SandboxGrant
from toolagent_service.calls.sandbox import granted
from toolagent_service.contracts.containers import ContainerInfo

T = TypeVar("T")

_COMMITTED = f"{OWN_IMAGES}rebuilt"
_MARK = "TOOL_AGENT_COMMAND"
_LOGS = "/var/log/tool-agent"


@dataclass(slots=True)
class _Site:
    """A build container in use. `name` identifies its connections and its note. `used` is a time of the monotonic clock."""

    info: ContainerInfo
    name: str
    wishes: Wishes
    way: AsyncExitStack
    audited: BuildAudit
    used: float = field(default_factory=time.monotonic)
    running: int = 0

    @property
    def container(self) -> str:
        return self.info.container_id


class BuildContainers:
    """The build containers of one state directory. Failures are StartFailed. `close` leaves the containers running.

    A container without use for the settings' `ttl_s` is unused. A running command, also one in the background, counts as use.
    """

    def __init__(self, parts: DockerParts) -> None:
        self._settings, self._engine, self._egress, self._book = parts.settings, parts.engine, parts.egress, parts.book
        self._parts, self._ports = parts, parts.ports
        self._images = Images(parts)
        self._notes = Notes(parts.settings.state / "containers")
        self._sites: dict[str, _Site] = {}
        self._count = itertools.count(1)

    @property
    def known(self) -> tuple[ContainerInfo, ...]:
        return tuple(site.info for site in self._sites.values())

    @property
    def volumes(self) -> Path:
        """Each tool's volumes are in its subfolder `place_of_volumes(tool_id)`."""
        return self._settings.state / "volumes"

    async def create(self, wishes: Wishes, progress: Progress) -> ContainerInfo:
        """Raises StartFailed."""
        name = wishes.image or self._settings.base_image
        image = await self._images.named(name, progress)
        return await self._make(wishes, name, image.image_id)

    async def run(self, container_id: str, command: Sequence[str], timeout_s: float) -> Executed:
        """Run a command, for at most `timeout_s` seconds. Raises StartFailed if the container is gone."""
        site = self._known(container_id)
        most, mark = self._settings.policy.defaults.output_bytes or 0, secrets.token_hex(8)
        with _used(site), site.audited.command(command) as told:
            begun = Command(site.container, command, most, {_MARK: mark})
            with usable("container", site.container):
                ran = await run_within(self._engine, begun, timeout_s, lambda: self._end(site, begun, mark))
            told |= told_of(ran)
            return ran

    async def run_in_background(self, container_id: str, command: Sequence[str]) -> str:
        """Start a command in the background; returns the file in the container that gets its output. Raises StartFailed."""
        site, carried = await self._site(container_id), await self._carried()
        log = f"{_LOGS}/{next(self._count)}-{secrets.token_hex(3)}.log"
        argv = carried.argv("log", log, *command)
        with _used(site), site.audited.command(command, "start"):
            await self._asked(site.container, lambda api: begin(api, site.container, argv))
        return log

    async def rebuild(
        self, container_id: str, ports: tuple[int, ...], *, mem_limit: str | None = None, nano_cpus: int | None = None
    ) -> ContainerInfo:
        """Put the same files into a new container with these ports. The old one is removed once the new one runs. Raises StartFailed."""
        site = await self._site(container_id)
        wishes = replace(
            site.wishes, ports=ports, mem_limit=mem_limit or site.wishes.mem_limit, nano_cpus=nano_cpus or site.wishes.nano_cpus
        )
        tag = secrets.token_hex(6)
        with _used(site):
            labels = " ".join(f"{label}={value}" for label, value in self._settings.image_labels.items())
            with usable("container", site.container):
                # With its container's labels, any container made from the image would count as ours.
                kept = await self._engine.work(
                    lambda api: api.commit(site.container, _COMMITTED, tag, changes=[f"LABEL {labels}"]), self._settings.build_timeout_s
                )
            try:
                made = await self._make(wishes, site.info.image, str(kept["Id"]))
            except StartFailed:
                await self._without_image(f"{_COMMITTED}:{tag}")
                raise
        await self.destroy(container_id)
        return made

    async def destroy(self, container_id: str) -> ContainerInfo:
        """Raises StartFailed if the container is not ours."""
        return await self._destroyed(await self._site(container_id))

    async def find(self) -> tuple[ContainerInfo, ...]:
        """Adopt the containers that earlier workers of this state directory left; stopped ones are started. Raises StartFailed."""
        with usable("container", ""):
            left = await own_containers(self._engine, self._settings, Kind.BUILD)
        await asyncio.to_thread(self._notes.forget_others, [marks.name for _, marks, _ in left])
        for container, marks, _ in left:
            if container not in self._sites:
                with contextlib.suppress(StartFailed):  # a container that cannot be recovered must not stop the others
                    await self._take_on(container, marks)
        with usable("container", ""):
            images = await own_images(self._engine, self._settings)
        for tag in [tag for image in images for tag in image.get("RepoTags") or () if tag.startswith(_COMMITTED)]:
            await self._without_image(tag)
        return self.known

    async def destroy_unused(self) -> Mapping[str, str]:
        """Destroy unused containers. Returns those that could not be destroyed, with the reason; the next call tries again."""
        failed: dict[str, str] = {}
        for site in [one for one in self._sites.values() if self._is_unused(one)]:
            if self._sites.get(site.info.container_id) is not site:
                continue
            try:
                await self._retire(site)
            except Exception as error:  # noqa: BLE001 - whatever it was, all others must go in their time
                failed[site.name] = f"{type(error).__name__}: {error}"
        return failed

    async def close(self) -> None:
        for site in self._sites.values():
            site.audited.rest()
            await site.way.aclose()

    async def _destroyed(self, site: _Site) -> ContainerInfo:
        """Record first: after a crash in between, `find` corrects the record. In the other order the container would be lost."""
        async with AsyncExitStack() as stack:
            self._sites.pop(site.container, None)
            stack.callback(self._sites.__setitem__, site.container, site)  # if it cannot be recorded
            destroyed = gone(site.info)
            await self._book.note(destroyed)
            stack.pop_all()
        await site.way.aclose()
        site.audited.rest()
        image = await self._gone(site.container, site.name)
        if image is not None:
            await self._without_image(image)
        return destroyed

    async def _end(self, site: _Site, begun: Command, mark: str) -> None:
        """End a command and all that it started. Raises EngineFailure."""
        first = await self._engine.ask(begun.first)
        argv = (await self._carried()).argv("end", f"{_MARK}={mark}", *([str(first)] if first else ()))
        ending = Command(site.container, argv, 0, {})
        try:
            await self._engine.ask(ending.execute)
        finally:
            ending.leave()  # root in the container may have stopped it

    async def _make(self, wishes: Wishes, image: str, image_id: str) -> ContainerInfo:
        settings = self._settings
        name = f"tool-agent-build-{wishes.tool_id.replace(':', '-')[:40]}-{secrets.token_hex(4)}"
        carried = await self._carried()
        limits = await self._limits(wishes)
        found = Image.read(await self._asked(name, lambda api: api.inspect_image(image_id)))
        mounts = await self._mounts(wishes)
        mounts += image_mounts(found, mounts, limits)
        index, audited = await self._parts.known_index(), self._audited(wishes)
        async with AsyncExitStack() as stack:
            stack.callback(self._forget, name)
            way, opened, published = await self._opened(name, wishes, {}, index, audited)
            stack.push_async_callback(opened.aclose)
            note = Note(wishes, image, published)
            await asyncio.to_thread(self._notes.keep, name, note)
            config = build_config(settings, note, name, image_id, way, carried, mounts, index_variables(index), limits)
            with usable("container", name):
                container = await created(self._engine, config, name)
            stack.push_async_callback(self._gone, container, name)
            await self._asked(name, lambda api: api.start(container))
            info = build_info(settings, container, note, published, datetime.now(UTC), limits)
            stack.push_async_callback(self._book.note, gone(info))
            await self._book.note(info)
            stack.pop_all()
        self._sites[info.container_id] = _Site(info, name, wishes, opened, audited)
        return info

    async def _limits(self, wishes: Wishes) -> ContainerLimits:
        """Raises StartFailed."""
        with usable("container of", wishes.tool_id):
            return limits_of(self._settings, wishes, await self._engine.processors())

    async def _mounts(self, wishes: Wishes) -> list[Document]:
        """Raises StartFailed."""
        mounts = await asyncio.to_thread(volume_mounts, dict(wishes.volumes), wishes.tool_id, self._settings, as_root=True)
        return [*mounts, *(bind(Path(folder), target) for folder, target in wishes.shown.items())]

    def _audited(self, wishes: Wishes) -> BuildAudit:
        return BuildAudit(self._parts.audit, self._settings.host, wishes.tool_id)

    async def _opened(
        self, name: str, wishes: Wishes, before: Mapping[int, int], index: Index, audited: BuildAudit
    ) -> tuple[SandboxNetwork, AsyncExitStack, dict[int, int]]:
        """Open the container's connections. Returns them, the stack that closes them, and its ports here: those of `before`, if free."""
        hosts, _ = granted(SandboxGrant(hosts=wishes.hosts), self._settings.policy)
        opening = Opening(
            hosts=(*index.hosts, *hosts.hosts),
            private_hosts=index.hosts,
            others=wishes.ports,
            tell=audited.refusals.tell,
            lasting=True,
            python=INSIDE,
        )
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
        """Traffic on a container's ports counts as use."""
        for site in self._sites.values():
            if site.name == name:
                site.used = time.monotonic()

    async def _take_on(self, container: str, marks: Marks) -> None:
        found = await self._asked(container, lambda api: api.inspect_container(container))
        note = await asyncio.to_thread(self._notes.read, marks.name, marks.source)
        note = note or Note(Wishes(marks.tool), str(found["Image"]), {})
        audited = self._audited(note.wishes)
        _, opened, published = await self._opened(marks.name, note.wishes, note.published, await self._parts.known_index(), audited)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(opened.aclose)
            if found["State"]["Status"] != "running":
                await self._mounts(note.wishes)  # the policy may have changed
                await self._asked(container, lambda api: api.start(container))
            created_at = moment_of(found["Created"])
            info = build_info(self._settings, container, note, published, created_at, await self._limits(note.wishes))
            await self._book.note(info)  # its ports may have changed, or a crash interrupted its removal
            stack.pop_all()
        self._sites[info.container_id] = _Site(info, marks.name, note.wishes, opened, audited)

    def _known(self, container_id: str) -> _Site:
        """The container with this id, or the only one whose id begins so. Raises StartFailed."""
        found = [site for known, site in self._sites.items() if container_id and known.startswith(container_id)]
        if len(found) == 1:
            return found[0]
        raise _is_gone(container_id)

    async def _site(self, container_id: str) -> _Site:
        """The container, checked to exist in the engine. Raises StartFailed."""
        site = self._known(container_id)
        with usable("container", container_id):
            try:
                await inspected(self._engine, site.container)
            except Missing as error:
                raise _is_gone(container_id) from error
        return site

    def _forget(self, name: str) -> None:
        self._notes.forget(name)
        self._egress.forget(name)

    async def _gone(self, container: str, name: str) -> str | None:
        """Remove a container; returns the image committed from its predecessor, if there is one."""
        with contextlib.suppress(EngineFailure):
            image = str((await inspected(self._engine, container))["Config"]["Image"])
            await removed(self._engine, container)
            await asyncio.to_thread(self._forget, name)
            tags: list[str] = (await self._engine.ask(lambda api: api.inspect_image(image))).get("RepoTags") or []
            return next((tag for tag in tags if tag.startswith(_COMMITTED)), None)
        return None

    async def _without_image(self, image: str) -> None:
        with contextlib.suppress(EngineFailure):  # another container still uses it
            await self._engine.ask(lambda api: api.remove_image(image))

    async def _carried(self) -> Carried:
        return await Carried.put_together(self._settings.state / "carried")

    async def _asked(self, name: str, what: Callable[[Api], T]) -> T:
        """Raises StartFailed."""
        with usable("container", name):
            return await self._engine.ask(what)

    def _is_unused(self, site: _Site) -> bool:
        return not site.running and time.monotonic() - site.used > self._settings.ttl_s

    async def _retire(self, site: _Site) -> None:
        """Destroy the container, unless a background command still runs. Raises EngineFailure, and errors of the book."""
        if await self._is_at_work(site):
            site.used = time.monotonic()
        elif self._is_unused(site):
            await self._destroyed(site)

    async def _is_at_work(self, site: _Site) -> bool:
        """Whether a command runs. The engine also knows commands that an earlier worker started."""
        runs: list[str] = []
        with contextlib.suppress(Missing):
            runs = (await inspected(self._engine, site.container)).get("ExecIDs") or []
        for run in runs:
            with contextlib.suppress(Missing):  # it has ended
                if (await self._engine.ask(lambda api, run=run: api.exec_inspect(run)))["Running"]:
                    return True
        return False


@contextlib.contextmanager
def _used(site: _Site) -> Generator[None]:
    site.running += 1
    try:
        yield
    finally:
        site.running -= 1
        site.used = time.monotonic()


def _is_gone(container_id: str) -> StartFailed:
    message = f"There is no build container {container_id!r} here: it was destroyed, or not used for too long. Make a new one."
    return StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"container_id": container_id})
