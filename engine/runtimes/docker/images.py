"""The images of tools: those that are there, those that are pulled, those that are built."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from engine.runtimes.docker.engine import Document, Engine, EngineFailure, EngineRefused, EngineUnavailable, Missing
from engine.runtimes.docker.labels import STATE, digest
from engine.runtimes.docker.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import DockerSource

__all__ = ["Image", "Images", "failure_of"]

_TOLD_LINES = 30
_TOLD_BYTES = 8192
_TCP = "/tcp"


@dataclass(frozen=True, slots=True)
class Image:
    """What an image says of itself. `ports` are those it exposes."""

    image_id: str
    command: tuple[str, ...]
    user: str
    folder: str
    environment: Mapping[str, str]
    ports: tuple[int, ...]

    @classmethod
    def read(cls, document: Document) -> "Image":
        config: Document = document.get("Config") or {}
        pairs = (entry.partition("=") for entry in config.get("Env") or ())
        exposed = sorted(int(port.removesuffix(_TCP)) for port in config.get("ExposedPorts") or () if port.endswith(_TCP))
        command = (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))
        return cls(
            str(document["Id"]),
            command,
            config.get("User") or "",
            config.get("WorkingDir") or "/",
            {name: value for name, _, value in pairs},
            tuple(exposed),
        )


class Images:
    """`projects` brings folders out of the content store."""

    def __init__(self, settings: DockerSettings, engine: Engine, projects: Projects | None) -> None:
        self._settings, self._engine, self._projects = settings, engine, projects

    async def of(self, tool_id: str, source: DockerSource, progress: Progress) -> Image:
        """Raises StartFailed."""
        if source.dockerfile is not None:
            return await self._built(tool_id, source, source.dockerfile, progress)
        if source.image is not None:
            return await self.named(source.image, progress)
        message = f"The docker source of {tool_id!r} names neither a container, nor a Dockerfile, nor an image."
        raise StartFailed(ErrorType.VALIDATION_ERROR, message, {"missing": ["container_id", "dockerfile", "image"]})

    async def named(self, name: str, progress: Progress) -> Image:
        """The image of this name, pulled when it is not here. Raises StartFailed."""
        try:
            if found := await self._find(name):
                return found
            progress(f"pulling the image {name}")
            await self._engine.ask(lambda api: _followed(api.pull(_tagged(name), stream=True, decode=True)), self._settings.build_timeout_s)
            found = await self._find(name)
        except EngineRefused as error:
            raise self._not_there(name, str(error)) from error
        except EngineFailure as error:
            raise failure_of(error, "image", name) from error
        if found is None:
            raise self._not_there(name, "the registry sent another one")
        return found

    async def _find(self, name: str) -> Image | None:
        try:
            return Image.read(await self._engine.ask(lambda api: api.inspect_image(name)))
        except Missing:
            return None

    def _not_there(self, name: str, why: str) -> StartFailed:
        remedy = " `make sandbox-image` builds it." if name == self._settings.base_image else ""
        message = f"The image {name!r} is not on this machine, and could not be pulled: {why}.{remedy}"
        return StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"image": name})

    async def _built(self, tool_id: str, source: DockerSource, dockerfile: str, progress: Progress) -> Image:
        folder = await self._folder(tool_id, source, progress)
        await asyncio.to_thread(_insist_on_file, folder, dockerfile, tool_id)
        tag = f"tool-agent/{tool_id.replace(':', '-').lower()}:{digest(source.content or str(folder), dockerfile)}"
        try:
            # A folder in the content store never changes; one in the data folder is the engine's cache's to compare.
            if source.content is not None and (found := await self._find(tag)):
                return found
            progress(f"building the image of {tool_id}")
            await self._build(tool_id, folder, dockerfile, tag, progress)
            found = await self._find(tag)
        except EngineFailure as error:
            raise failure_of(error, "dockerfile", dockerfile) from error
        if found is None:
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, f"The image of {tool_id!r} was built and is gone again.", {"image": tag})
        return found

    async def _build(self, tool_id: str, folder: Path, dockerfile: str, tag: str, progress: Progress) -> None:
        log = _BuildLog(asyncio.get_running_loop(), progress)
        settings = self._settings
        limits = {"memory": (settings.limits.memory_bytes or 0), "memswap": (settings.limits.memory_bytes or 0)}
        try:
            await self._engine.ask(
                lambda api: log.follow(
                    api.build(
                        path=str(folder),
                        dockerfile=dockerfile,
                        tag=tag,
                        rm=True,
                        forcerm=True,
                        decode=True,
                        labels={STATE: settings.owner.state},
                        network_mode=None,
                        buildargs={},
                        container_limits=limits,
                        timeout=int(settings.build_timeout_s),
                    )
                ),
                settings.build_timeout_s,
            )
        except EngineUnavailable:
            raise
        except EngineRefused as error:
            message = f"The Dockerfile {dockerfile!r} of {tool_id!r} could not be built: {error}"
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"dockerfile": dockerfile, "log": log.tail}) from error

    async def _folder(self, tool_id: str, source: DockerSource, progress: Progress) -> Path:
        """Where the Dockerfile is. Raises StartFailed."""
        if source.content is not None and self._projects is not None:
            return await self._projects.folder_of(source.content, tool_id, progress)
        root = await asyncio.to_thread(self._settings.data.resolve)
        try:
            folder = await asyncio.to_thread((root / (source.host_dir or f"tools/docker/{tool_id}")).resolve)
        except (OSError, ValueError, RuntimeError) as error:
            raise StartFailed(ErrorType.SECURITY_ERROR, f"{source.host_dir!r} is no folder name: {error}") from error
        if not folder.is_relative_to(root):
            message = f"The folder {source.host_dir!r} of the tool {tool_id!r} leads out of the data folder."
            raise StartFailed(ErrorType.SECURITY_ERROR, message, {"host_dir": source.host_dir})
        return folder


class _BuildLog:
    """What a build says, its end kept; told to `progress` from the thread that reads it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, progress: Progress) -> None:
        self._tell: Callable[[str], object] = lambda line: loop.call_soon_threadsafe(progress, line)
        self._lines: list[str] = []

    @property
    def tail(self) -> JsonValue:
        return "\n".join(self._lines)[-_TOLD_BYTES:]

    def follow(self, answer: Iterable[Document]) -> None:
        """Raises EngineRefused when a step fails."""
        for part in answer:
            if text := str(part.get("stream") or part.get("error") or "").strip("\r\n"):
                self._lines = [*self._lines, text][-_TOLD_LINES:]
                if text.startswith("Step "):
                    self._tell(text)
            if error := part.get("error"):
                raise EngineRefused(str(error))


def failure_of(error: EngineFailure, what: str, name: str) -> StartFailed:
    """What the engine's failure means to a tool's start."""
    kind = ErrorType.DEPENDENCY_ERROR if isinstance(error, EngineRefused) else ErrorType.UNAVAILABLE
    return StartFailed(kind, f"The {what} {name!r} cannot be used: {error}", {what: name})


def _followed(answer: Iterable[Document]) -> None:
    """Raises EngineRefused."""
    for part in answer:
        if error := part.get("error"):
            raise EngineRefused(str(error))


def _tagged(name: str) -> str:
    """Without a tag, all of them would be pulled."""
    return name if "@" in name or ":" in name.rpartition("/")[2] else f"{name}:latest"


def _insist_on_file(folder: Path, dockerfile: str, tool_id: str) -> None:
    try:
        path = (folder / dockerfile).resolve()
        there = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError, RuntimeError):
        there = False
    if not there:
        message = f"The tool {tool_id!r} has no Dockerfile {dockerfile!r} in its folder."
        raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"dockerfile": dockerfile, "missing": dockerfile})
