"""Runs tools as containers that serve HTTP; they outlive this process when it is killed, and are found again."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from engine.runtimes.call_audit import Audited
from engine.runtimes.docker.account import account_of, serving_limits
from engine.runtimes.docker.book import gone
from engine.runtimes.docker.carried import INSIDE, Carried
from engine.runtimes.docker.deaths import Deaths, ending_of
from engine.runtimes.docker.engine import Document, EngineFailure, Missing
from engine.runtimes.docker.given import GivenContainers
from engine.runtimes.docker.image import Image
from engine.runtimes.docker.images import Images, failure_of
from engine.runtimes.docker.labels import STATE, Kind, Marks, digest
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving import TMP, Shape, container_config, created, info_of, inspected, removed
from engine.runtimes.docker.unused import UnusedTimer
from engine.runtimes.docker.variables import Variables, handed_over, variables_of
from engine.runtimes.docker.volumes import bind, calls_of, image_mounts, volume_mounts
from engine.runtimes.failures import NotSent, StartFailed
from engine.runtimes.http_exchange import HttpExchange, Target
from engine.runtimes.projects import Projects
from engine.runtimes.readiness import serves
from engine.runtimes.request_parts import Places
from engine.runtimes.runtime import Progress, Retired, Running, ToolRequest
from engine.runtimes.sandbox.egress import Opening, Way
from engine.runtimes.sandbox.watch import Watch
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.containers import ContainerInfo
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxAccount, SandboxLimits
from toolagent.contracts.sources import DockerSource
from toolagent.core.sandbox import asked, granted
from toolagent.core.shared_processes import name_inside, place_of, process_key

__all__ = ["DockerRuntime"]

_FIRST_LOOK_S = 0.02
_SLOWEST_LOOK_S = 0.2
_ASK_S = 2.0
_IDLE_ASK_S = 1.0
_OK = 200
_PORT = 8000
"""For a server that is told by $PORT."""
_TOLD_LINES = 40


@dataclass(slots=True)
class _Serving:
    """A container that is up. `used` is by the monotonic clock; without `info` it was given to us, and is not removed.

    `name` is that of its way in; the container itself goes by its id.
    """

    container: str
    running: Running
    name: str
    place: str
    used: float
    way: AsyncExitStack
    audited: Audited
    info: ContainerInfo | None = None
    sees_calls: bool = False
    in_flight: int = 0
    is_retiring: bool = False
    is_buried: bool = False
    burial: asyncio.Lock = field(default_factory=asyncio.Lock)


class DockerRuntime:
    """The runtime of DockerSource. To be closed with `close`, which leaves the containers."""

    def __init__(self, parts: DockerParts, http: HttpExchange, projects: Projects | None = None) -> None:
        self._parts, self._book = parts, parts.book
        self._settings, self._engine, self._egress, self._http = parts.settings, parts.engine, parts.egress, http
        self._images = Images(parts, projects)
        self._given = GivenContainers(parts)
        self._deaths = Deaths(parts.engine)
        self._up: dict[str, _Serving] = {}
        self._timer = UnusedTimer(parts.settings.ttl_s, self._up, self._is_unused, self._retire)

    async def start(self, tool: ToolManifest, source: DockerSource, progress: Progress) -> Running:
        try:
            if source.container_id is not None:
                serving = await self._attached(tool, source, source.container_id, progress)
            else:
                serving = await self._made(tool, source, progress)
        except EngineFailure as error:
            raise failure_of(error, "container of", tool.tool_id) from error
        except OSError as error:
            raise StartFailed(ErrorType.UNAVAILABLE, f"The container of {tool.tool_id!r} cannot be started here: {error}") from error
        self._up[serving.running.endpoint] = serving
        serving.audited.started()
        self._timer.start()
        return serving.running

    async def is_alive(self, running: Running) -> bool:
        serving = self._up.get(running.endpoint)
        return serving is not None and not serving.is_retiring and not self._deaths.has_ended(serving.container)

    async def is_idle(self, running: Running, source: DockerSource) -> bool:
        health = await self._http.health(running.endpoint, source.health_path, _IDLE_ASK_S)
        return health is not None and health.status == _OK and health.active == 0

    async def call(self, running: Running, source: DockerSource, request: ToolRequest) -> JsonValue:
        serving = self._up.get(running.endpoint)
        if serving is None or serving.is_retiring:
            raise NotSent(ErrorType.UNAVAILABLE, "The container has ended.", {"endpoint": running.endpoint})
        serving.in_flight += 1
        try:
            is_there = serving.sees_calls and await asyncio.to_thread(request.output_dir.is_dir)
            headers = {"X-Output-Dir": str(request.output_dir) if is_there else TMP}
            with serving.audited.call(request):
                target = Target(running.endpoint, source.http_method, source.endpoint_path, headers, places=Places.of(source))
                return await self._http.call(target, request)
        finally:
            serving.in_flight -= 1
            serving.used = time.monotonic()

    async def stop(self, running: Running) -> None:
        serving = self._up.get(running.endpoint)
        if serving is not None:
            serving.is_retiring = True
            with contextlib.suppress(EngineFailure):  # an engine that is away ended its containers, or the sweep will find them
                await self._stop(serving)
            self._up.pop(running.endpoint, None)

    async def ended(self, running: Running) -> str:
        serving = self._up.get(running.endpoint)
        if serving is None:
            return "ended"
        how = await self._deaths.ended(serving.container)
        if not serving.is_retiring:
            serving.is_retiring = True
            with contextlib.suppress(EngineFailure):
                await self._buried(serving)
            self._up.pop(running.endpoint, None)
        return how

    async def logs(self, running: Running, lines: int = _TOLD_LINES) -> str:
        """The end of what the container said. Raises EngineFailure."""
        serving = self._up.get(running.endpoint)
        return await self._log_of(serving.container, lines) if serving is not None else ""

    @property
    def parts(self) -> DockerParts:
        return self._parts

    async def found(self) -> tuple[Marks, ...]:
        """The serving containers that are up and that workers of this state directory have left. Raises EngineFailure."""
        return tuple(marks for _, marks, is_running in await self._left() if is_running)

    async def sweep(self) -> tuple[str, ...]:
        """Remove the serving containers of this state directory that are not in use here; their names. Raises EngineFailure."""
        used = {serving.container for serving in self._up.values()}
        left = [(container, marks) for container, marks, _ in await self._left() if container not in used]
        for container, marks in left:
            await self._swept(container, marks)
        return tuple(sorted(marks.name for _, marks in left))

    async def sweep_images(self, sources_of: Callable[[str], Awaitable[Sequence[DockerSource]]]) -> tuple[str, ...]:
        """Remove the images that were built for what no version of a tool says any more; their names. Raises EngineFailure."""
        return await self._images.sweep(sources_of)

    async def close(self) -> None:
        self._timer.stop()
        for serving in self._up.values():
            await serving.way.aclose()
        self._deaths.close()

    async def _left(self) -> list[tuple[str, Marks, bool]]:
        wanted = {"label": f"{STATE}={self._settings.owner.state}"}
        containers = await self._engine.ask(lambda api: api.containers(all=True, filters=wanted))
        read = [(one, self._settings.seals.container(one.get("Labels"))) for one in containers]
        ours = [(str(one["Id"]), whose[1], one.get("State") == "running") for one, whose in read if whose is not None]
        return [(container, marks, is_running) for container, marks, is_running in ours if marks.kind is Kind.SERVING]

    async def _made(self, tool: ToolManifest, source: DockerSource, progress: Progress) -> _Serving:
        enforced, _ = granted(asked(tool.security_context), self._settings.policy)
        hosts = enforced.hosts
        image = await self._images.of(name_inside(tool.tool_id, source), source, hosts, progress)
        variables = await asyncio.to_thread(variables_of, source, tool.tool_id, self._parts.secrets)
        shape = self._shape(tool, source, image, hosts, variables, await self._engine.processors())
        audited = self._audited(tool, shape.command, account_of(tool, self._settings.policy, shape.limits))
        if adopted := await self._adopted(shape, hosts, audited, source, progress):
            return adopted
        progress(f"starting a container for {tool.tool_id}")
        name = shape.marks.name
        carried = await Carried.put_together(self._settings.state / "carried")
        mounts = await asyncio.to_thread(self._mounts, shape, source)
        given = handed_over(variables.secret, self._settings.state / "containers", self._settings.identity)
        async with AsyncExitStack() as stack:
            stack.callback(self._egress.forget, name)
            way, opened = await self._opened(name, shape.port, hosts, audited)
            stack.push_async_callback(opened.aclose)
            stack.push_async_callback(self._http.forget, way.endpoint)
            with given as file:
                shape = replace(shape, mounts=tuple(mounts), given=file)
                container = await created(self._engine, container_config(shape, way, carried), name)
                stack.push_async_callback(self._removed, container, name)
                self._deaths.watch(container)
                stack.callback(self._deaths.forget, container)
                await self._engine.ask(lambda api: api.start(container))
                await self._until_healthy(tool.tool_id, container, way.endpoint, source.health_path)
            serving, info = await self._serving(container, shape, audited, name, way.endpoint, opened)
            stack.push_async_callback(self._book.note, gone(info))
            await self._book.note(info)
            stack.pop_all()
        return serving

    def _mounts(self, shape: Shape, source: DockerSource) -> list[Document]:
        """Raises StartFailed, OSError."""
        mounts = volume_mounts(source.volumes, shape.place, self._settings)
        if shape.calls is not None:
            shape.calls.mkdir(parents=True, exist_ok=True)
            mounts.append(bind(shape.calls, str(shape.calls), writable=True))
        return [*mounts, *image_mounts(shape.image, mounts, shape.limits)]

    def _audited(self, tool: ToolManifest, command: tuple[str, ...], account: SandboxAccount | None) -> Audited:
        return Audited(self._parts.audit, self._settings.host, tool, command, account)

    async def _opened(self, name: str, port: int, hosts: tuple[str, ...], audited: Audited) -> tuple[Way, AsyncExitStack]:
        """The ways into and out of the container of this name, and what closes our end of them. Raises OSError."""
        stack = AsyncExitStack()
        observed = self._settings.observed
        opening = Opening(hosts=hosts, port=port, tell=audited.refusals.tell, lasting=True, python=INSIDE, observed=observed)
        return await stack.enter_async_context(self._egress.open(name, opening)), stack

    async def _adopted(
        self, shape: Shape, hosts: tuple[str, ...], audited: Audited, source: DockerSource, progress: Progress
    ) -> _Serving | None:
        """A container that a worker before this one made for the same, and that still answers."""
        used = {serving.container for serving in self._up.values()}
        for container, marks, is_running in await self._left():
            same = (marks.tool, marks.version, marks.source) == (shape.marks.tool, shape.marks.version, shape.marks.source)
            if not same or not is_running or container in used:
                continue
            way, opened = await self._opened(marks.name, shape.port, hosts, audited)
            self._deaths.watch(container)
            health = await self._http.health(way.endpoint, source.health_path, _ASK_S)
            if health is not None and await serves(health, source.health_path, way.endpoint, self._http):
                progress(f"found the container of {marks.tool} that was left")
                serving, info = await self._serving(container, shape, audited, marks.name, way.endpoint, opened)
                await self._book.note(info)  # somebody may have died who was about to remove it
                return serving
            self._deaths.forget(container)
            await opened.aclose()
            await self._http.forget(way.endpoint)
            await self._swept(container, marks)
        return None

    async def _attached(self, tool: ToolManifest, source: DockerSource, container: str, progress: Progress) -> _Serving:
        progress(f"looking for the container {container[:12]}")
        found = await self._given.find(tool.tool_id, container, source.internal_port)
        self._deaths.watch(found.container)
        if found.must_start:
            progress(f"starting the container {container[:12]}")
            await self._engine.ask(lambda api: api.start(found.container))
            found = await self._given.find(tool.tool_id, container, source.internal_port)
        await self._until_healthy(tool.tool_id, found.container, found.endpoint, source.health_path)
        running = Running(found.endpoint, datetime.now(UTC), found.pid, source.internal_port or None)
        place, audited = place_of(tool.tool_id, source), self._audited(tool, (), None)
        return _Serving(found.container, running, "", place, time.monotonic(), AsyncExitStack(), audited)

    async def _serving(
        self, container: str, shape: Shape, audited: Audited, name: str, endpoint: str, way: AsyncExitStack
    ) -> tuple[_Serving, ContainerInfo]:
        found = await inspected(self._engine, container)
        state, info = found["State"], info_of(found, shape.marks)
        started, pid = datetime.fromisoformat(str(state["StartedAt"])[:19]).replace(tzinfo=UTC), int(state["Pid"])
        if shape.calls is not None:
            watch = Watch(
                [shape.calls], SandboxLimits(disk_bytes=shape.limits.scratch_bytes), memory=False, kill=lambda: self._fill(container)
            )
            watch.begin(lambda: pid)
            way.push_async_callback(watch.end)
        running = Running(endpoint, started, pid)
        sees_calls = shape.calls is not None
        return _Serving(container, running, name, shape.place, time.monotonic(), way, audited, info, sees_calls=sees_calls), info

    def _fill(self, container: str) -> None:
        """Who is said to have ended is removed."""
        self._deaths.say(container, "wrote more into the files of its calls than it may (`diskBytes`) and was ended")

    def _shape(
        self, tool: ToolManifest, source: DockerSource, image: Image, hosts: tuple[str, ...], variables: Variables, processors: int
    ) -> Shape:
        """Raises StartFailed."""
        command = source.command or image.command
        if not command:
            message = f"The image of {tool.tool_id!r} says no command to run; name one in the source's `command`."
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"image": image.image_id})
        settings, calls = self._settings, calls_of(tool, source, self._settings)
        limits = serving_limits(tool, source, settings, processors)
        port = source.internal_port or (image.ports[0] if len(image.ports) == 1 else _PORT)
        said = process_key(tool, source) or source.model_dump_json(exclude={"process"})
        apart = ["observed", str(settings.kept)] if settings.observed else []
        if variables.secret:
            apart.append(settings.seals.digest(*(f"{name}={value}" for name, value in sorted(variables.secret.items()))))
        told = digest(said, image.image_id, repr(limits), str(calls), *hosts, *apart)
        name = f"tool-agent-{tool.tool_id.replace(':', '-')[:40]}-{secrets.token_hex(4)}"
        marks = Marks(Kind.SERVING, name, tool.tool_id, tool.version, settings.host, settings.owner.mark, told)
        names = (name_inside(tool.tool_id, source), place_of(tool.tool_id, source))
        return Shape(settings.labels(marks), marks, image, command, variables.plain, limits, port, settings.user, *names, calls)

    async def _until_healthy(self, tool_id: str, container: str, endpoint: str, path: str) -> None:
        """Raises StartFailed."""
        pause, last = _FIRST_LOOK_S, "no answer"
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                while not self._deaths.has_ended(container):
                    health = await self._http.health(endpoint, path, _ASK_S)
                    last = f"status {health.status}" if health else last
                    if health and await serves(health, path, endpoint, self._http):
                        return
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, _SLOWEST_LOOK_S)
        except TimeoutError:
            waited = self._settings.start_timeout_s
            message = f"The container of {tool_id!r} did not become healthy: {path} did not answer 200 within {waited:g} s ({last})."
            raise StartFailed(ErrorType.UNAVAILABLE, message, {"last_answer": last, "log": await self._log_of(container)}) from None
        how = await self._deaths.ended(container)
        message = f"The container of {tool_id!r} {how} while it was starting."
        raise StartFailed(ErrorType.UNAVAILABLE, message, {"ended": how, "log": await self._log_of(container)})

    async def _log_of(self, container: str, lines: int = _TOLD_LINES) -> str:
        try:
            said = await self._engine.ask(lambda api: api.logs(container, stdout=True, stderr=True, tail=lines))
        except Missing:
            return ""
        return said.decode(errors="replace")

    async def _stop(self, serving: _Serving) -> None:
        grace = max(1, round(self._settings.stop_grace_s))
        with contextlib.suppress(Missing):
            await self._engine.ask(lambda api: api.stop(serving.container, timeout=grace))
            self._deaths.say(serving.container, ending_of((await inspected(self._engine, serving.container))["State"]))
        await self._buried(serving)

    async def _buried(self, serving: _Serving) -> None:
        """Keep its last words, and remove it if it was ours to make; whoever comes second waits until that is done."""
        async with serving.burial:
            if serving.is_buried:
                return
            said = await self._log_of(serving.container)
            await asyncio.to_thread(_write, self._settings.kept / "tools" / serving.place / "last_run.log", said)
            await serving.way.aclose()
            serving.audited.ended()
            await self._http.forget(serving.running.endpoint)
            if serving.info is not None:
                await self._book.note(gone(serving.info))
                await self._removed(serving.container, serving.name)
            serving.is_buried = True
        self._deaths.say(serving.container, "is gone")

    async def _swept(self, container: str, marks: Marks) -> None:
        with contextlib.suppress(Missing):
            await self._book.note(gone(info_of(await inspected(self._engine, container), marks)))
        await self._removed(container, marks.name)

    async def _removed(self, container: str, name: str) -> None:
        """What is gone is no error. Raises EngineFailure."""
        with contextlib.suppress(Missing):
            await removed(self._engine, container)
        await asyncio.to_thread(self._egress.forget, name)

    def _is_unused(self, serving: _Serving) -> bool:
        return not serving.in_flight and not serving.is_retiring and time.monotonic() - serving.used > self._settings.ttl_s

    async def _retire(self, serving: _Serving) -> None:
        # Before anything is awaited: a call that comes now finds it gone, and starts another.
        serving.is_retiring = True
        self._deaths.say(serving.container, Retired(f"stopped: it was not called for {self._settings.ttl_s:g} s"))
        try:
            await self._stop(serving)
        finally:
            self._up.pop(serving.running.endpoint, None)


def _write(path: Path, text: str) -> None:
    with contextlib.suppress(OSError):  # a full disk: the container is gone all the same
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
