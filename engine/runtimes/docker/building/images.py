"""The images of tools: present, pulled or built."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine.runtimes.docker.building.dockerfiles import Dockerfile, DockerfileRefused, check_triggers
from engine.runtimes.docker.building.image_builds import Build, ImageBuilds
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.engine import Document, EngineFailure, EngineRefused, Missing
from engine.runtimes.docker_engine.image import Image
from engine.runtimes.docker_engine.labels import OWN_IMAGES, TOOL, digest, is_reserved
from engine.runtimes.docker_engine.leftovers import own_images
from engine.runtimes.failures import StartFailed
from engine.runtimes.projects import Projects, data_folder
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import DockerSource
from toolagent_service.calls.container_names import is_image

_TOOLS = f"{OWN_IMAGES}tool/"
_YOUNG = timedelta(hours=1)


class Images:
    """`projects` provides folders from the content store."""

    def __init__(self, parts: DockerParts, projects: Projects | None = None) -> None:
        self._settings, self._engine, self._projects = parts.settings, parts.engine, projects
        self._builds = ImageBuilds(parts)
        self._turns: dict[str, asyncio.Lock] = {}
        self._tools, self._has_swept = set[str](), False

    async def of(self, tool_id: str, source: DockerSource, hosts: Sequence[str], progress: Progress) -> Image:
        """The image of a tool. A build may reach `hosts` besides the package indexes. Raises StartFailed."""
        if source.dockerfile is not None:
            async with self._turns.setdefault(tool_id, asyncio.Lock()):
                return await self._built(tool_id, source, hosts, source.dockerfile, progress)
        if source.image is not None:
            return await self.named(source.image, progress)
        message = f"The docker source of {tool_id!r} names neither a container, nor a Dockerfile, nor an image."
        raise StartFailed(ErrorType.VALIDATION_ERROR, message, {"missing": ["container_id", "dockerfile", "image"]})

    async def named(self, name: str, progress: Progress) -> Image:
        """The image of this name, pulled if missing. Raises StartFailed."""
        if not is_image(name):
            message = f"{name[:80]!a} is no name of an image: write it like `python:3.12` or `registry.example:5000/team/image:1`."
            raise StartFailed(ErrorType.VALIDATION_ERROR, message, {"image": name[:80]})
        try:
            if found := await self._find(name):
                return _public(name, found)
            progress(f"pulling the image {name}")
            longest = self._settings.build_timeout_s
            await self._engine.work(lambda api: _followed(api.pull(_tagged(name), stream=True, decode=True)), longest)
            found = await self._find(name)
        except EngineRefused as error:
            raise self._not_there(name, str(error)) from error
        except EngineFailure as error:
            raise failure_of(error, "image", name) from error
        if found is None:
            raise self._not_there(name, "the registry sent another one")
        return _public(name, found)

    async def sweep(self, sources_of: Callable[[str], Awaitable[Sequence[DockerSource]]]) -> tuple[str, ...]:
        """Remove images built for sources that no tool has any more; returns their names. Raises EngineFailure.

        A young image that never belonged to a tool may be a candidate's and stays, except at the first sweep, before any trial.
        """
        ours = await own_images(self._engine, self._settings)
        built = {tag: str(one["Labels"].get(TOOL, "")) for one in ours for tag in one.get("RepoTags") or () if tag.startswith(_TOOLS)}
        needed = {await self._tag_of(tool, source) for tool in set(built.values()) for source in await sources_of(tool)}
        gone = [tag for tag in built if tag not in needed and (tag in self._tools or not self._has_swept or await self._is_old(tag))]
        self._tools |= {tag for tag in needed if tag}
        self._has_swept = True
        for tag in gone:
            with contextlib.suppress(EngineRefused):  # a container still uses it
                await self._engine.ask(lambda api, tag=tag: api.remove_image(tag))
                self._tools.discard(tag)
        await self._builds.tidy()
        return tuple(sorted(gone))

    async def _is_old(self, tag: str) -> bool:
        """Judged by when it got its name: an image from the engine's cache was created long before."""
        found = await self._find(tag)
        if found is None:
            return True
        said: Document = found.get("Metadata") or {}
        at = datetime.fromisoformat(str(said.get("LastTagTime") or found["Created"]))
        return datetime.now(UTC) - at > _YOUNG

    async def _find(self, name: str) -> Document | None:
        try:
            return await self._engine.ask(lambda api: api.inspect_image(name))
        except Missing:
            return None

    def _not_there(self, name: str, why: str) -> StartFailed:
        remedy = " `make sandbox-image` builds it." if name == self._settings.base_image else ""
        message = f"The image {name!r} is not on this machine, and could not be pulled: {why}.{remedy}"
        return StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"image": name})

    async def _built(self, tool_id: str, source: DockerSource, hosts: Sequence[str], file: str, progress: Progress) -> Image:
        folder = await self._folder(tool_id, source, progress)
        tag = self._tag(tool_id, source.content or str(folder), file)
        try:
            # A folder of the content store never changes. For one of the data folder, the engine's cache decides.
            if source.content is not None and (found := await self._find(tag)) and self._is_ours(found):
                return Image.read(found)
            read = Dockerfile.read(await asyncio.to_thread(_text_of, folder, file, tool_id))
            triggers = [(base, (await self.named(base, progress)).triggers) for base in read.bases]
            runs = [check_triggers(base, said) for base, said in triggers]
            progress(f"building the image of {tool_id}")
            await self._builds.run(Build(tool_id, folder, file, read, read.runs or any(runs), tag, hosts), progress)
            found = await self._find(tag)
        except DockerfileRefused as refusal:
            message = f"The Dockerfile {file!r} of {tool_id!r} is not built: {refusal}"
            raise StartFailed(ErrorType.SECURITY_ERROR, message, {"dockerfile": file}) from refusal
        except EngineFailure as error:
            raise failure_of(error, "dockerfile", file) from error
        if found is None or not self._is_ours(found):
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, f"The image of {tool_id!r} was built, but is gone already.", {"image": tag})
        return Image.read(found)

    def _is_ours(self, found: Document) -> bool:
        return self._settings.seals.image(_labels_of(found)) is not None

    def _tag(self, tool_id: str, folder: str, file: str) -> str:
        """The image's name. `folder` is an id of the content store, or a path."""
        name = re.sub(r"[^a-z0-9]+", "-", tool_id).strip("-")
        return f"{_TOOLS}{name}:{digest(self._settings.owner.state, tool_id, folder, file)}"

    async def _tag_of(self, tool_id: str, source: DockerSource) -> str | None:
        """The name of the image built for this source; None if none is built, or its folder is unknown."""
        if source.dockerfile is None or source.container_id is not None:
            return None
        with contextlib.suppress(StartFailed):
            folder = source.content or str(await self._data_folder(tool_id, source))
            return self._tag(tool_id, folder, source.dockerfile)
        return None

    async def _folder(self, tool_id: str, source: DockerSource, progress: Progress) -> Path:
        """The folder of the Dockerfile. Raises StartFailed."""
        if source.content is not None and self._projects is not None:
            return await self._projects.folder_of(source.content, tool_id, progress)
        return await self._data_folder(tool_id, source)

    async def _data_folder(self, tool_id: str, source: DockerSource) -> Path:
        """Raises StartFailed."""
        return await asyncio.to_thread(data_folder, [self._settings.data], source.host_dir or f"tools/docker/{tool_id}", tool_id)


def failure_of(error: EngineFailure, what: str, name: str) -> StartFailed:
    """Translate the engine's failure for a tool's start."""
    kind = ErrorType.DEPENDENCY_ERROR if isinstance(error, EngineRefused) else ErrorType.UNAVAILABLE
    return StartFailed(kind, f"The {what} {name!r} cannot be used: {error}", {what: name})


@contextlib.contextmanager
def usable(what: str, name: str) -> Generator[None]:
    """Raises StartFailed for an EngineFailure of the block."""
    try:
        yield
    except EngineFailure as error:
        raise failure_of(error, what, name) from error


def _followed(answer: Iterable[Document]) -> None:
    """Read a pull's answer to its end, which frees the connection. Raises EngineRefused."""
    errors = [str(part["error"]) for part in answer if part.get("error")]
    if errors:
        raise EngineRefused(errors[0])


def _public(name: str, found: Document) -> Image:
    """The image, if it was not made here for a tool, however it is named. Raises StartFailed."""
    if any(map(is_reserved, _labels_of(found))) or any(tag.startswith(OWN_IMAGES) for tag in found.get("RepoTags") or ()):
        message = (
            f"The image {name!r} was made here for a tool, or its labels say so. Name its origin instead: a Dockerfile, or its base image."
        )
        raise StartFailed(ErrorType.SECURITY_ERROR, message, {"image": name})
    return Image.read(found)


def _labels_of(found: Document) -> dict[str, str]:
    config: Document = found.get("Config") or {}
    return config.get("Labels") or {}


def _tagged(name: str) -> str:
    """The name with a tag: without one, all tags would be pulled."""
    return name if "@" in name or ":" in name.rpartition("/")[2] else f"{name}:latest"


def _text_of(folder: Path, dockerfile: str, tool_id: str) -> str:
    try:
        path = (folder / dockerfile).resolve()
        if path.is_relative_to(folder.resolve()) and path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError, RuntimeError):
        pass
    message = f"The tool {tool_id!r} has no Dockerfile {dockerfile!r} in its folder."
    raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"dockerfile": dockerfile, "missing": dockerfile})
