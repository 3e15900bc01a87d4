"""Builds images from Dockerfiles: with no network but the proxy, within a time, and leaving nothing of what it did not finish."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from docker.utils import build as contexts  # pyright: ignore[reportMissingTypeStubs] - it has none; `_Tar` says what is used
from pydantic import JsonValue

from engine.runtimes.docker.dockerfiles import Dockerfile
from engine.runtimes.docker.engine import Document, EngineFailure, EngineRefused
from engine.runtimes.docker.gate import Gate, opened_gate
from engine.runtimes.docker.labels import STATE, TOOL
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType

__all__ = ["Build", "ImageBuilds"]

_TOLD_LINES = 30
_TOLD_BYTES = 8192
_END_TRIES = 20
_END_LOOK_S = 0.5
_FILE = ".dockerfile.tool-agent"
"""Beside the folder's own files: what is built is what was checked."""


class _Tar(Protocol):
    def __call__(self, path: str, *, exclude: list[str], dockerfile: tuple[str, str]) -> BinaryIO: ...


_tar = cast("_Tar", contexts.tar)  # pyright: ignore[reportUnknownMemberType]


@dataclass(frozen=True, slots=True)
class Build:
    """What is to be built. `file` is the Dockerfile's name in the folder; `hosts` may be reached besides where packages come from."""

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
        log = _BuildLog(asyncio.get_running_loop(), progress)
        self._running += 1
        try:
            async with AsyncExitStack() as stack:
                gate = await self._gate(build, stack)
                context = await asyncio.to_thread(_context, build.folder, build.read.labelled(self._parts.settings.origin.labels))
                stack.callback(context.close)
                await self._followed(build, gate, context, log)
        except EngineRefused as error:
            message = f"The Dockerfile {build.file!r} of {build.tool_id!r} could not be built: {error}"
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"dockerfile": build.file, "log": log.tail}) from error
        finally:
            self._running -= 1
            await asyncio.shield(self.tidy())

    async def tidy(self) -> None:
        """Remove what builds left that failed, or that others have replaced."""
        if self._running:
            return  # what is being built looks the same
        filters = {"dangling": True, "label": f"{STATE}={self._parts.settings.owner.state}"}
        with contextlib.suppress(EngineFailure):
            for image in await self._parts.engine.ask(lambda api: api.images(filters=filters)):
                with contextlib.suppress(EngineRefused):  # a container is made of it
                    await self._parts.engine.ask(lambda api, image=image: api.remove_image(image["Id"]))

    async def _gate(self, build: Build, stack: AsyncExitStack) -> Gate:
        if not build.runs:
            return Gate(self._parts.engine)
        index = await self._parts.known_index()
        return await stack.enter_async_context(opened_gate(self._parts, build.tool_id, (*index, *build.hosts), index))

    async def _followed(self, build: Build, gate: Gate, context: BinaryIO, log: "_BuildLog") -> None:
        settings = self._parts.settings
        memory = settings.limits.memory_bytes or 0
        work = asyncio.ensure_future(
            self._parts.engine.ask(
                lambda api: log.follow(
                    api.build(
                        fileobj=context,
                        custom_context=True,
                        dockerfile=_FILE,
                        tag=build.tag,
                        rm=True,
                        forcerm=True,
                        decode=True,
                        labels={TOOL: build.tool_id},
                        network_mode=gate.network,
                        buildargs=dict(gate.arguments),
                        container_limits={"memory": memory, "memswap": memory},
                        timeout=int(settings.build_timeout_s) + 1,
                    )
                ),
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
    """The engine goes on with a build until the step it is at has ended."""
    for _ in range(_END_TRIES):
        with contextlib.suppress(EngineFailure):
            await gate.end()
        if (await asyncio.wait({work}, timeout=_END_LOOK_S))[0]:
            break
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


class _BuildLog:
    """What a build says, its end kept; told to `progress` from the thread that reads it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, progress: Progress) -> None:
        self._tell: Callable[[str], object] = lambda line: loop.call_soon_threadsafe(progress, line)
        self._lines: list[str] = []

    @property
    def tail(self) -> JsonValue:
        return "\n".join(self._lines)[-_TOLD_BYTES:]

    def follow(self, answer: Iterable[Document]) -> None:
        """Raises EngineRefused when a step fails. Reads to the end: only then the connection is given back."""
        failed = ""
        for part in answer:
            if text := str(part.get("stream") or part.get("error") or "").strip("\r\n"):
                self._lines = [*self._lines, text][-_TOLD_LINES:]
                if text.startswith("Step "):
                    self._tell(text)
            failed = failed or str(part.get("error") or "")
        if failed:
            raise EngineRefused(failed)


def _context(folder: Path, text: str) -> BinaryIO:
    """The folder as the engine wants it, without what its `.dockerignore` names."""
    ignored = folder / ".dockerignore"
    lines = [line.strip() for line in ignored.read_text(encoding="utf-8").splitlines()] if ignored.is_file() else []
    return _tar(str(folder), exclude=[line for line in lines if line and not line.startswith("#")], dockerfile=(_FILE, text))
