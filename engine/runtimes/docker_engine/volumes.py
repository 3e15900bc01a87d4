"""The folders of the machine that a tool's container may see."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import structlog

from engine.runtimes.docker_engine.binds import bind
from engine.runtimes.docker_engine.engine import Document
from engine.runtimes.docker_engine.image import Image
from engine.runtimes.docker_engine.limits import ContainerLimits
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource
from toolagent_service.calls.shared_processes import place_of, place_of_volumes
from toolagent_service.calls.ways import names_files

_OWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OURS = ("/.tool-agent", "/run/tool-agent", "/proc", "/sys", "/dev")
_IN_MEMORY = ("/tmp", "/var/tmp")  # noqa: S108 - the container's own
_EVERYBODYS = 0o777
_MOST_OF_AN_IMAGE = 16

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def calls_of(tool: ToolManifest, source: DockerSource, settings: DockerSettings) -> Path | None:
    """The folder with the files of this tool's calls, if its schemas mention files. Tools that share a container share the folder."""
    if settings.calls is None or not (names_files(tool) or source.process):
        return None
    return settings.calls.resolve() / place_of(tool.tool_id, source)


def place_inside(target: str) -> PurePosixPath | None:
    """The container's folder in the engine's form; None if nothing may be mounted there."""
    if not target.startswith("/") or ".." in target.split("/") or not target.isprintable():
        return None
    place = PurePosixPath("/" + posixpath.normpath(target).lstrip("/"))
    return None if place == PurePosixPath("/") or any(place.is_relative_to(own) for own in _OURS) else place


def image_mounts(image: Image, mounts: Sequence[Document], limits: ContainerLimits) -> list[Document]:
    """Folders in memory in place of the image's volumes, which the engine would keep on its disk without a limit.

    Raises StartFailed.
    """
    if len(image.volumes) > _MOST_OF_AN_IMAGE:
        message = f"The image {image.name!r} has {len(image.volumes)} volumes (VOLUME), and {_MOST_OF_AN_IMAGE} are the most."
        raise StartFailed(ErrorType.SECURITY_ERROR, message, {"image": image.name})
    places = {volume: place_inside(posixpath.join("/", volume)) for volume in image.volumes}
    for volume, place in places.items():
        if place is None:
            message = f"The image {image.name!r} has a volume (VOLUME) at {volume[:200]!a}, where nothing can be mounted."
            raise StartFailed(ErrorType.SECURITY_ERROR, message, {"image": image.name, "volume": volume[:200]})
    taken = {str(mount["Target"]) for mount in mounts} | set(_IN_MEMORY)
    options = {"SizeBytes": limits.scratch_bytes, "Mode": 0o1777}
    return [
        {"Type": "tmpfs", "Target": place, "TmpfsOptions": options}
        for place in dict.fromkeys(map(str, places.values()))
        if place not in taken
    ]


def renamed_volumes(volumes: Path, places: Iterable[str]) -> None:
    """Rename folders of earlier releases, whose names two tools could share. Ambiguous folders stay, with a warning."""
    owners: Mapping[str, set[str]] = defaultdict(set)
    for place in places:
        owners[place.replace(":", "_")].add(place)
    for name, candidates in owners.items():
        old, now = volumes / name, [volumes / place_of_volumes(place) for place in sorted(candidates)]
        if not old.is_dir():
            continue
        if len(now) == 1 and not now[0].exists():
            old.rename(now[0])
        elif len(now) > 1:
            _log.warning("volumes_not_renamed", folder=str(old), candidates=[str(one) for one in now], remedy="move it by hand")


def volume_mounts(volumes: dict[str, str], tool_id: str, settings: DockerSettings, *, as_root: bool = False) -> list[Document]:
    """The mounts of a source's volumes. A plain name is the tool's own folder in the state directory; paths need the policy's permission.

    A container that runs as root may only read these paths: it could leave set-uid programs there. A candidate
    beside the version in use may only read them, too.

    Raises StartFailed.
    """
    return [_mount(source, target, tool_id, settings, as_root=as_root) for source, target in volumes.items()]


def _mount(source: str, target: str, tool_id: str, settings: DockerSettings, *, as_root: bool) -> Document:
    place = place_inside(target)
    if place is None:
        raise _refused(source, f"{target!r} is not a folder of the container that can be mounted at")
    target = str(place)
    if _OWN_NAME.fullmatch(source):
        folder = settings.kept / "volumes" / place_of_volumes(tool_id) / source
        folder.mkdir(parents=True, exist_ok=True)
        if settings.identity is not None:
            settings.identity.own_all(folder)  # also files of an earlier user of these containers
        folder.chmod(_EVERYBODYS)  # for any user of the container; the state directory around it is private
        return bind(folder, target, writable=True)
    try:
        folder = Path(source).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise _refused(source, f"the folder is not there ({error})") from error
    writable = _folders(settings.policy.write)
    if any(one in folder.parents for one in writable):
        # The engine resolves the path again at each start of the container.
        raise _refused(
            source, "it lies in a folder that tools write to, and a tool could replace it by a link; the policy must name a folder outside"
        )
    if folder in writable:
        return bind(folder, target, writable=not as_root and settings.beside is None)
    if any(map(folder.is_relative_to, _folders(settings.policy.read))):
        return bind(folder, target)
    raise _refused(source, "the policy of this host names it neither in `read` nor in `write`")


def _folders(patterns: tuple[str, ...]) -> list[Path]:
    return [Path(one.removesuffix("/**") or "/").resolve() for one in patterns if one.startswith("/")]


def _refused(source: str, why: str) -> StartFailed:
    return StartFailed(ErrorType.SECURITY_ERROR, f"The volume {source!r} cannot be used: {why}.", {"volume": source})
