"""Derives a serving container's properties from its tool, source, image and this host's settings."""

import secrets

from engine.runtimes.docker.serving.account import serving_limits
from engine.runtimes.docker_engine.binds import bind
from engine.runtimes.docker_engine.engine import Document
from engine.runtimes.docker_engine.image import Image
from engine.runtimes.docker_engine.labels import Kind, digest
from engine.runtimes.docker_engine.serving_containers import Shape
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.docker_engine.volumes import calls_of, image_mounts, volume_mounts
from engine.runtimes.failures import StartFailed
from engine.runtimes.variables import Variables
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource
from toolagent_service.calls.shared_processes import name_inside, place_of, process_key

_PORT = 8000
"""The port of a server that reads $PORT."""


def shape_of(
    tool: ToolManifest,
    source: DockerSource,
    image: Image,
    hosts: tuple[str, ...],
    variables: Variables,
    processors: int,
    settings: DockerSettings,
) -> Shape:
    """Raises StartFailed."""
    command = source.command or image.command
    if not command:
        message = f"The image of {tool.tool_id!r} has no command to run: name one in the source's `command`."
        raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"image": image.image_id})
    calls = calls_of(tool, source, settings)
    limits = serving_limits(tool, source, settings, processors)
    port = source.internal_port or (image.ports[0] if len(image.ports) == 1 else _PORT)
    said = process_key(tool, source) or source.model_dump_json(exclude={"process"})
    apart = ["observed", str(settings.kept)] if settings.observed else []
    if variables.secret:
        apart.append(settings.seals.digest(*(f"{name}={value}" for name, value in sorted(variables.secret.items()))))
    told = digest(said, image.image_id, repr(limits), str(calls), *hosts, *apart)
    name = f"tool-agent-{tool.tool_id.replace(':', '-')[:40]}-{secrets.token_hex(4)}"
    marks = settings.marks(Kind.SERVING, name, tool.tool_id, tool.version, told)
    names = (name_inside(tool.tool_id, source), place_of(tool.tool_id, source))
    return Shape(settings.labels(marks), marks, image, command, variables.plain, limits, port, settings.user, *names, calls)


def mounts_of(shape: Shape, source: DockerSource, settings: DockerSettings) -> list[Document]:
    """The mounts of the container's folders. Its own folders are handed to the user of `settings`. Raises StartFailed, OSError."""
    mounts = volume_mounts(source.volumes, shape.place, settings)
    if shape.calls is not None:
        shape.calls.mkdir(parents=True, exist_ok=True)
        mounts.append(bind(shape.calls, str(shape.calls), writable=True))
    return [*mounts, *image_mounts(shape.image, mounts, shape.limits)]
