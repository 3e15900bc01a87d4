"""Runs tools as containers that serve HTTP.

They outlive this process if it is killed, and are found again.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from engine.runtimes.auditing.audit import Audited
from engine.runtimes.docker.book import gone
from engine.runtimes.docker.building.images import Images, usable
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving.account import account_of
from engine.runtimes.docker.serving.given import GivenContainers
from engine.runtimes.docker.serving.shaping import mounts_of, shape_of
from engine.runtimes.docker.serving.users import user_of
from engine.runtimes.docker_engine.carried import INSIDE, Carried
from engine.runtimes.docker_engine.deaths import Deaths, ending_of
from engine.runtimes.docker_engine.engine import EngineFailure, Missing
from engine.runtimes.docker_engine.labels import Kind, Marks
from engine.runtimes.docker_engine.leftovers import own_containers
from engine.runtimes.docker_engine.serving_containers import TMP, Shape, container_config, created, info_of, inspected, moment_of, removed
from engine.runtimes.failures import NotSent, StartFailed
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.own_servers import own_target
from engine.runtimes.http.readiness import is_idle, serves, vitals_of
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import Progress, Running, ToolRequest, Vitals
from engine.runtimes.sandbox.egress import Opening, SandboxNetwork
from engine.runtimes.sandbox.identity import Identity
from engine.runtimes.sandbox.levels.watch import Watch
from engine.runtimes.variables import handed_over, variables_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxAccount, SandboxLimits
from toolagent.contracts.sources import DockerSource
from toolagent_service.calls.sandbox import granted
from toolagent_service.calls.shared_processes import name_inside, place_of
from toolagent_service.contracts.containers import ContainerInfo

_FIRST_LOOK_S = 0.02
_SLOWEST_LOOK_S = 0.2
_ASK_S = 2.0
_TOLD_LINES = 40


@dataclass(slots=True)
class _Serving:
    """A running container. Without `info` it is not ours, and is never removed.

    `name` identifies its connections; the container itself is known by its id. `release` gives its user back.
    """

    container: str
    running: Running
    name: str
    place: str
    way: AsyncExitStack
    audited: Audited
    release: Callable[[], None]
    info: ContainerInfo | None = None
    sees_calls: bool = False
    is_retiring: bool = False
    is_removed: bool = False
    removal: asyncio.Lock = field(default_factory=asyncio.Lock)


class DockerRuntime:
    """The runtime of DockerSource. `close` leaves the containers running."""

    def __init__(self, parts: DockerParts, http: HttpExchange, projects: Projects | None = None) -> None:
        self._parts, self._book = parts, parts.book
        self._settings, self._engine, self._egress, self._http = parts.settings, parts.engine, parts.egress, http
        self._images = Images(parts, projects)
        self._given = GivenContainers(parts)
        self._deaths = Deaths(parts.engine)
        self._up: dict[str, _Serving] = {}
        self._when_gone: dict[str, ExitStack] = {}  # callbacks for when a container is gone, by its name

    async def start(self, tool: ToolManifest, source: DockerSource, progress: Progress) -> Running:
        try:
            with usable("container of", tool.tool_id):
                if source.container_id is not None:
                    serving = await self._attached(tool, source, source.container_id, progress)
                else:
                    serving = await self._made(tool, source, progress)
        except OSError as error:
            raise StartFailed(ErrorType.UNAVAILABLE, f"The container of {tool.tool_id!r} cannot be started here: {error}") from error
        self._up[serving.running.endpoint] = serving
        serving.audited.started()
        return serving.running

    async def is_alive(self, running: Running) -> bool:
        serving = self._up.get(running.endpoint)
        return serving is not None and not serving.is_retiring and not self._deaths.has_ended(serving.container)

    async def is_idle(self, running: Running, source: DockerSource) -> bool:
        return await is_idle(running.endpoint, source.health_path, self._http)

    async def vitals(self, running: Running, source: DockerSource, timeout_s: float) -> Vitals:
        return await vitals_of(running.endpoint, source.health_path, self._http, timeout_s)

    async def call(self, running: Running, source: DockerSource, request: ToolRequest) -> JsonValue:
        serving = self._up.get(running.endpoint)
        if serving is None or serving.is_retiring:
            raise NotSent(ErrorType.UNAVAILABLE, "The container has ended.", {"endpoint": running.endpoint})
        headers = {"X-Output-Dir": request.written_to if serving.sees_calls else TMP}
        async with serving.audited.call(request):
            return await self._http.call(own_target(running.endpoint, source, headers, self._parts.secrets), request)

    async def stop(self, running: Running) -> None:
        serving = self._up.get(running.endpoint)
        if serving is not None:
            serving.is_retiring = True
            with contextlib.suppress(EngineFailure):  # if the engine is away, its containers have ended or the sweep finds them
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
                await self._put_away(serving)
            self._up.pop(running.endpoint, None)
        return how

    @property
    def parts(self) -> DockerParts:
        return self._parts

    @property
    def ttl_s(self) -> float:
        return self._settings.ttl_s

    async def found(self) -> tuple[Marks, ...]:
        """The running serving containers of this state directory. Raises EngineFailure."""
        return tuple(marks for _, marks, is_running in await self._left() if is_running)

    async def sweep(self) -> tuple[str, ...]:
        """Remove the serving containers of this state directory that are not in use; returns their names. Raises EngineFailure."""
        used = {serving.container for serving in self._up.values()}
        left = [(container, marks) for container, marks, _ in await self._left() if container not in used]
        for container, marks in left:
            await self._swept(container, marks)
        return tuple(sorted(marks.name for _, marks in left))

    async def sweep_images(self, sources_of: Callable[[str], Awaitable[Sequence[DockerSource]]]) -> tuple[str, ...]:
        """Remove images built for sources that no version of a tool has any more; returns their names. Raises EngineFailure."""
        return await self._images.sweep(sources_of)

    async def close(self) -> None:
        for serving in self._up.values():
            await serving.way.aclose()
            serving.release()
        self._deaths.close()

    async def _left(self) -> list[tuple[str, Marks, bool]]:
        return await own_containers(self._engine, self._settings, Kind.SERVING)

    async def _made(self, tool: ToolManifest, source: DockerSource, progress: Progress) -> _Serving:
        enforced, _ = granted(tool.security_context.asked, self._settings.policy)
        hosts = enforced.hosts
        image = await self._images.of(name_inside(tool.tool_id, source), source, hosts, progress)
        variables = await asyncio.to_thread(variables_of, source, tool.tool_id, self._parts.secrets)
        shape = shape_of(tool, source, image, hosts, variables, await self._engine.processors(), self._settings)
        audited = self._audited(tool, shape.command, account_of(tool, self._settings, shape.limits))
        if adopted := await self._adopted(shape, hosts, audited, source, progress):
            return adopted
        progress(f"starting a container for {tool.tool_id}")
        name = shape.marks.name
        carried = await Carried.put_together(self._settings.state / "carried")
        async with AsyncExitStack() as stack:
            user = await asyncio.to_thread(user_of, self._parts, shape.place)
            stack.callback(self._release, name, user.release)
            mounts = await asyncio.to_thread(mounts_of, shape, source, user.settings)
            given = handed_over(variables.secret, self._settings.state / "containers", user.identity)
            stack.callback(self._egress.forget, name)
            way, opened = await self._opened(name, shape.port, hosts, audited, user.identity)
            stack.push_async_callback(opened.aclose)
            stack.push_async_callback(self._http.forget, way.endpoint)
            with given as file:
                shape = replace(shape, mounts=tuple(mounts), given=file, user=user.settings.user)
                container = await created(self._engine, container_config(shape, way, carried), name)
                stack.push_async_callback(self._remove, container, name)
                self._deaths.watch(container)
                stack.callback(self._deaths.forget, container)
                await self._engine.ask(lambda api: api.start(container))
                await self._until_healthy(tool.tool_id, container, way.endpoint, source.health_path)
            serving, info = await self._serving(container, shape, audited, name, way.endpoint, opened, user.release)
            stack.push_async_callback(self._book.note, gone(info))
            await self._book.note(info)
            stack.pop_all()
        return serving

    def _audited(self, tool: ToolManifest, command: tuple[str, ...], account: SandboxAccount | None) -> Audited:
        return Audited(self._parts.audit, self._settings.host, tool, command, account)

    async def _opened(
        self, name: str, port: int, hosts: tuple[str, ...], audited: Audited, identity: Identity | None
    ) -> tuple[SandboxNetwork, AsyncExitStack]:
        """Open the container's connections; returns them and the stack that closes our end. Raises OSError."""
        stack = AsyncExitStack()
        tell, observed = audited.refusals.tell, self._settings.observed
        opening = Opening(hosts=hosts, port=port, tell=tell, lasting=True, python=INSIDE, observed=observed, identity=identity)
        return await stack.enter_async_context(self._egress.open(name, opening)), stack

    async def _adopted(
        self, shape: Shape, hosts: tuple[str, ...], audited: Audited, source: DockerSource, progress: Progress
    ) -> _Serving | None:
        """Adopt a container that an earlier worker made for the same source, if it still answers."""
        used = {serving.container for serving in self._up.values()}
        for container, marks, is_running in await self._left():
            same = (marks.tool, marks.version, marks.source) == (shape.marks.tool, shape.marks.version, shape.marks.source)
            if not same or not is_running or container in used:
                continue
            when_gone = self._when_gone.setdefault(marks.name, ExitStack())
            serving = await self._found_again(container, marks, shape, hosts, audited, source)
            if serving is not None:
                self._when_gone.pop(marks.name, when_gone).close()
                progress(f"found the container of {marks.tool} that was left")
                return serving
            await self._swept(container, marks)
        return None

    async def _found_again(
        self, container: str, marks: Marks, shape: Shape, hosts: tuple[str, ...], audited: Audited, source: DockerSource
    ) -> _Serving | None:
        """None if the container does not answer, or if another tool has its user by now."""
        found = await inspected(self._engine, container)
        async with AsyncExitStack() as stack:
            user = await asyncio.to_thread(user_of, self._parts, shape.place, str(found["Config"]["User"]))
            stack.callback(self._release, marks.name, user.release)
            if user.settings.user != found["Config"]["User"]:
                return None
            way, opened = await self._opened(marks.name, shape.port, hosts, audited, user.identity)
            stack.push_async_callback(self._http.forget, way.endpoint)
            stack.push_async_callback(opened.aclose)
            self._deaths.watch(container)
            stack.callback(self._deaths.forget, container)
            health = await self._http.health(way.endpoint, source.health_path, _ASK_S)
            if health is None or not await serves(health, source.health_path, way.endpoint, self._http):
                return None
            serving, info = await self._serving(container, shape, audited, marks.name, way.endpoint, opened, user.release)
            await self._book.note(info)  # a crash may have interrupted its removal
            stack.pop_all()
        return serving

    async def _attached(self, tool: ToolManifest, source: DockerSource, container: str, progress: Progress) -> _Serving:
        progress(f"looking for the container {container[:12]}")
        found = await self._given.find(tool.tool_id, container, source.internal_port)
        self._deaths.watch(found.container)
        if not found.endpoint:
            progress(f"starting the container {container[:12]}")
            await self._engine.ask(lambda api: api.start(found.container))
            found = await self._given.find(tool.tool_id, container, source.internal_port)
        await self._until_healthy(tool.tool_id, found.container, found.endpoint, source.health_path)
        running = Running(found.endpoint, datetime.now(UTC), found.pid, source.internal_port or None)
        place, audited = place_of(tool.tool_id, source), self._audited(tool, (), None)
        return _Serving(found.container, running, "", place, AsyncExitStack(), audited, lambda: None)

    async def _serving(
        self, container: str, shape: Shape, audited: Audited, name: str, endpoint: str, way: AsyncExitStack, release: Callable[[], None]
    ) -> tuple[_Serving, ContainerInfo]:
        found = await inspected(self._engine, container)
        state, info = found["State"], info_of(found, shape.marks)
        started, pid = moment_of(state["StartedAt"]), int(state["Pid"])
        if shape.calls is not None:
            # A container that is reported as ended is removed.
            how = "wrote more into the files of its calls than it may (`diskBytes`) and was ended"
            limits = SandboxLimits(disk_bytes=shape.limits.scratch_bytes)
            watch = Watch([shape.calls], limits, memory=False, kill=lambda: self._deaths.say(container, how))
            watch.begin(lambda: pid)
            way.push_async_callback(watch.end)
        running, sees_calls = Running(endpoint, started, pid), shape.calls is not None
        return _Serving(container, running, name, shape.place, way, audited, release, info, sees_calls=sees_calls), info

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

    async def _log_of(self, container: str) -> str:
        try:
            said = await self._engine.ask(lambda api: api.logs(container, stdout=True, stderr=True, tail=_TOLD_LINES))
        except Missing:
            return ""
        return said.decode(errors="replace")

    async def _stop(self, serving: _Serving) -> None:
        grace = max(1, round(self._settings.stop_grace_s))
        with contextlib.suppress(Missing):
            await self._engine.ask(lambda api: api.stop(serving.container, timeout=grace))
            self._deaths.say(serving.container, ending_of((await inspected(self._engine, serving.container))["State"]))
        await self._put_away(serving)

    async def _put_away(self, serving: _Serving) -> None:
        """Keep the end of the container's log, and remove it if it is ours. A second caller waits until that is done."""
        async with serving.removal:
            if serving.is_removed:
                return
            said = await self._log_of(serving.container)
            await asyncio.to_thread(_write, self._settings.kept / "tools" / serving.place / "last_run.log", said)
            await serving.way.aclose()
            serving.audited.ended()
            await self._http.forget(serving.running.endpoint)
            if serving.info is not None:
                await self._book.note(gone(serving.info))
            try:
                if serving.info is not None:
                    await self._remove(serving.container, serving.name)
            finally:
                self._release(serving.name, serving.release)
            serving.is_removed = True
        self._deaths.say(serving.container, "is gone")

    async def _swept(self, container: str, marks: Marks) -> None:
        with contextlib.suppress(Missing):
            await self._book.note(gone(info_of(await inspected(self._engine, container), marks)))
        await self._remove(container, marks.name)

    async def _remove(self, container: str, name: str) -> None:
        """Remove a container, if it still exists, and what belongs to it. Raises EngineFailure."""
        when_gone = self._when_gone.setdefault(name, ExitStack())
        with contextlib.suppress(Missing):
            await removed(self._engine, container)
        self._when_gone.pop(name, when_gone).close()
        await asyncio.to_thread(self._egress.forget, name)

    def _release(self, name: str, release: Callable[[], None]) -> None:
        """Give the container's user back: at once, or, if the container may still run, once the sweep has removed it."""
        when_gone = self._when_gone.get(name)
        release() if when_gone is None else when_gone.callback(release)


def _write(path: Path, text: str) -> None:
    with contextlib.suppress(OSError):  # a full disk must not stop the removal
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
