"""Which folders of the machine a container of a tool may see."""

import re
from pathlib import Path, PurePosixPath

from engine.runtimes.docker.engine import Document
from engine.runtimes.docker.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource
from toolagent.core.schemas import FILE_PATH, mentions_format
from toolagent.core.shared_processes import place_of

__all__ = ["bind", "calls_of", "volume_mounts"]

_OWN_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
_OURS = ("/.tool-agent", "/proc", "/sys", "/dev")
_EVERYBODYS = 0o777


def bind(source: Path, target: str, *, writable: bool = False) -> Document:
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": not writable}


def calls_of(tool: ToolManifest, source: DockerSource, settings: DockerSettings) -> Path | None:
    """The folder of the files of this tool's calls, if its schemas speak of files; who shares a container sees that of all who do."""
    speaks = any(mentions_format(schema, FILE_PATH) for schema in (tool.input_schema, tool.output_schema))
    if settings.calls is None or not (speaks or source.process):
        return None
    return settings.calls.resolve() / place_of(tool.tool_id, source)


def volume_mounts(volumes: dict[str, str], tool_id: str, settings: DockerSettings, *, as_root: bool = False) -> list[Document]:
    """A plain name is a folder of the tool's own in the state directory, made here; others must lie where the policy allows.

    Who is root in the container only reads those: files that it left there could be programs that make others root. So does a tool that
    runs beside the version in use, whose files they are.

    Raises StartFailed.
    """
    return [_mount(source, target, tool_id, settings, as_root=as_root) for source, target in volumes.items()]


def _mount(source: str, target: str, tool_id: str, settings: DockerSettings, *, as_root: bool) -> Document:
    inside = PurePosixPath(target)
    if not inside.is_absolute() or ".." in inside.parts or inside == PurePosixPath("/") or any(inside.is_relative_to(own) for own in _OURS):
        raise _refused(source, f"{target!r} is no folder of the container that can be mounted")
    if _OWN_NAME.match(source):
        folder = settings.kept / "volumes" / tool_id.replace(":", "_") / source
        folder.mkdir(parents=True, exist_ok=True)
        if settings.identity is not None:
            settings.identity.own_all(folder)  # also what an earlier user of these containers left
        folder.chmod(_EVERYBODYS)  # whoever the container's user is; the state directory around it is ours alone
        return bind(folder, target, writable=True)
    try:
        folder = Path(source).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise _refused(source, f"the folder is not there ({error})") from error
    writable, readable = _folders(settings.policy.write), _folders(settings.policy.read)
    if any(one in folder.parents for one in writable):
        # The engine looks the path up again at each start of the container.
        raise _refused(
            source, "it lies in a folder that tools write to, who could put a link in its place; the policy has to name one outside"
        )
    if folder in writable:
        return bind(folder, target, writable=not as_root and settings.beside is None)
    if any(folder.is_relative_to(one) for one in readable):
        return bind(folder, target)
    raise _refused(source, "the policy of this host names it neither in `read` nor in `write`")


def _folders(patterns: tuple[str, ...]) -> list[Path]:
    return [Path(one.removesuffix("/**") or "/").resolve() for one in patterns if one.startswith("/")]


def _refused(source: str, why: str) -> StartFailed:
    return StartFailed(ErrorType.SECURITY_ERROR, f"The volume {source!r} cannot be used: {why}.", {"volume": source})
