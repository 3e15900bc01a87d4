"""Builds images from Dockerfiles: the network is the proxy only, the time is limited, and a failed build leaves nothing."""

import asyncio
import contextlib
import contextvars
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from pydantic import JsonValue

from engine.runtimes.docker.building.build_audit import BuildAudit
from engine.runtimes.docker.building.build_context import FILE, build_context
from engine.runtimes.docker.building.dockerfiles import Dockerfile
from engine.runtimes.docker.building.gate import Gate, opened_gate
from engine.runtimes.docker.building.index_variables import index_variables
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.engine import Api, Document, EngineFailure, EngineRefused
from engine.runtimes.docker_engine.labels import TOOL
from engine.runtimes.docker_engine.leftovers import own_images
from engine.runtimes.docker_engine.limits import ContainerLimits
from engine.runtimes.environments.indexes import Index
from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType

_TOLD_LINES = 30
_TOLD_BYTES = 8192
_END_TRIES = 20
_END_LOOK_S = 0.5

_PERIOD = 100_000
_NANO = 1_000_000_000
_REFUSED = 400


@dataclass(frozen=True, slots=True)
class Build:
    """One build. `file` is the Dockerfile's name in the folder; `hosts` may be reached besides the package indexes."""

    tool_id: str
    folder: Path
    file: str
    read: Dockerfile
    runs: bool
    tag: str
    hosts: Sequence[str]


class ImageBuilds:
    def __init__(self, parts: DockerParts) -> None:
        self._parts = parts
        self._running = 0

    async def run(self, build: Build, progress: Progress) -> None:
        """Raises StartFailed, EngineFailure, OSError."""
        audited = BuildAudit(self._parts.audit, self._parts.settings.host, build.tool_id)
        with audited.command(("docker", "build", "--file", build.file)):
            await self._run(build, audited, progress)

    async def _run(self, build: Build, audited: BuildAudit, progress: Progress) -> None:
        log = _BuildLog(asyncio.get_running_loop(), progress)
        self._running += 1
        try:
            async with AsyncExitStack() as stack:
                index = await self._parts.known_index() if build.runs else Index()
                told = {name: value for name, value in index_variables(index).items() if name.isidentifier()}
                gate = await self._gate(build, index, audited, stack)
                gate = replace(gate, arguments={**gate.arguments, **told})
                settings = self._parts.settings
                text, most = build.read.labelled(settings.image_labels, told), settings.policy.ceilings.disk_bytes
                context = await asyncio.to_thread(build_context, build.folder, text, most)
                stack.callback(context.close)
                await self._followed(build, gate, context, log)
        except EngineRefused as error:
            message = f"The Dockerfile {build.file!r} of {build.tool_id!r} could not be built: {error}"
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"dockerfile": build.file, "log": log.tail}) from error
        finally:
            self._running -= 1
            await asyncio.shield(self.tidy())

    async def tidy(self) -> None:
        """Remove images of failed builds, and those that newer builds replaced."""
        if self._running:
            return  # images of a running build look the same
        with contextlib.suppress(EngineFailure):
            for image in await own_images(self._parts.engine, self._parts.settings, dangling=True):
                with contextlib.suppress(EngineRefused):  # a container uses it
                    await self._parts.engine.ask(lambda api, image=image: api.remove_image(image["Id"]))

    async def _gate(self, build: Build, index: Index, audited: BuildAudit, stack: AsyncExitStack) -> Gate:
        if not build.runs:
            return Gate(self._parts.engine)
        hosts = (*index.hosts, *build.hosts)
        return await stack.enter_async_context(opened_gate(self._parts, build.tool_id, hosts, index.hosts, audited.refusals.tell))

    async def _followed(self, build: Build, gate: Gate, context: BinaryIO, log: "_BuildLog") -> None:
        settings = self._parts.settings
        # Installing needs more files, and larger ones, than what is installed.
        usual, most = settings.policy.defaults, settings.policy.ceilings
        usual, processors = usual.model_copy(update={"open_files": None, "file_bytes": None}), await self._parts.engine.processors()
        limits = ContainerLimits.within(usual, most, processors)
        options = {
            "version": "1",  # the builder that respects `networkmode`
            "t": build.tag,
            "dockerfile": FILE,
            "rm": "1",
            "forcerm": "1",
            "labels": json.dumps({**settings.image_labels, TOOL: build.tool_id}),
            "networkmode": gate.network,
            "buildargs": json.dumps(dict(gate.arguments)),
            # For each step. The engine does not accept a number of processes.
            "memory": str(limits.memory_bytes),
            "memswap": str(limits.memory_bytes),
            "cpuperiod": str(_PERIOD),
            "cpuquota": str(limits.nano_cpus * _PERIOD // _NANO),
            "ulimits": json.dumps(limits.host_config["Ulimits"]),
        }
        work = asyncio.ensure_future(
            self._parts.engine.work(
                lambda api: log.follow(_answer(api, options, context, settings.build_timeout_s + 1)),
                settings.build_timeout_s + _END_TRIES,
            )
        )
        try:
            done, _ = await asyncio.wait({work}, timeout=settings.build_timeout_s)
        except asyncio.CancelledError:
            await asyncio.shield(_ended(work, gate))
            raise
        if not done:
            await _ended(work, gate)
            message = f"The Dockerfile {build.file!r} of {build.tool_id!r} was not built within {settings.build_timeout_s:g} s."
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"dockerfile": build.file, "log": log.tail})
        work.result()


async def _ended(work: asyncio.Future[None], gate: Gate) -> None:
    """End a build. The engine goes on until the current step has ended, so its containers are removed."""
    for _ in range(_END_TRIES):
        with contextlib.suppress(EngineFailure):
            await gate.end()
        if (await asyncio.wait({work}, timeout=_END_LOOK_S))[0]:
            break
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


class _BuildLog:
    """The output of a build: keeps its end, and reports each step to `progress`. Read in a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, progress: Progress) -> None:
        # The listener may read context variables, which are missing in the reading thread.
        ours = contextvars.copy_context()
        self._tell: Callable[[str], object] = lambda line: loop.call_soon_threadsafe(progress, line, context=ours)
        self._lines: list[str] = []

    @property
    def tail(self) -> JsonValue:
        return "\n".join(self._lines)[-_TOLD_BYTES:]

    def follow(self, answer: Iterable[Document]) -> None:
        """Read the engine's answer to its end, which frees the connection. Raises EngineRefused if a step failed."""
        failed = ""
        for part in answer:
            if text := str(part.get("stream") or part.get("error") or "").strip("\r\n"):
                self._lines = [*self._lines, text][-_TOLD_LINES:]
                if text.startswith("Step "):
                    self._tell(text)
            failed = failed or str(part.get("error") or "")
        if failed:
            raise EngineRefused(failed)


def _answer(api: Api, options: Mapping[str, str], context: BinaryIO, timeout_s: float) -> Iterator[Document]:
    """The engine's answer to a build, part by part, at most `timeout_s` seconds apart. Raises EngineRefused. Blocks.

    Posted directly, because the library does not support the limits among these options.
    """
    url = f"{api.base_url}/v{api.api_version}/build"
    headers = {"Content-Type": "application/tar"}
    with api.post(url, data=context, params=options, headers=headers, stream=True, timeout=timeout_s) as response:
        if response.status_code >= _REFUSED:
            raise EngineRefused(response.text)
        for line in response.iter_lines():
            if line.strip():
                yield cast("Document", json.loads(line))
