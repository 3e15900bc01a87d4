"""The projects of local tools, each unpacked once from its archive."""

import asyncio
import re
import secrets
import tarfile
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from engine.disk.leftovers import discard
from engine.runtimes.failures import StartFailed
from engine.runtimes.folders import entries
from engine.runtimes.process.file_lock import locked
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.identifiers import FILE_ID_PATTERN
from toolagent.core.failures import ContentDamagedError, ContentMissingError, StoreUnavailableError

_REMEDY = "Start the service with the data folder that has the tool, or have the tool made or imported again."
_PART = ".part"
_MAX_BYTES = 256 * 1_048_576
_MAX_MEMBERS = 20_000
_DEEPEST = 200
_READ_ONLY = 0o555


class UnsafeArchiveError(ValueError):
    """The archive is damaged, or holds entries that must not be unpacked."""


class Archives(Protocol):
    """A source of archives."""

    async def fetch(self, content: str, folder: Path) -> Path:
        """Copy the archive into the folder, checked against its hash.

        Raises ContentMissingError, ContentDamagedError, StoreUnavailableError, OSError.
        """
        ...


async def project_of(projects: "Projects | None", content: str, tool_id: str, progress: Progress) -> Path:
    """Like `Projects.folder_of`; also raises StartFailed if this host has no content store."""
    if projects is None:
        message = f"The files of {tool_id!r} are {content!r} of a content store, and this host has none."
        raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"content": content})
    return await projects.folder_of(content, tool_id, progress)


def data_folder(roots: Sequence[Path], host_dir: str, tool_id: str) -> Path:
    """The folder `host_dir`, relative to the first root; it must lie in one of the roots. Raises StartFailed. Blocks."""
    allowed = [root.resolve() for root in roots]
    try:
        project = (allowed[0] / host_dir).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise StartFailed(ErrorType.SECURITY_ERROR, f"{host_dir!r} is no folder name: {error}") from error
    if not any(root in project.parents for root in allowed):
        message = f"The folder {host_dir!r} of the tool {tool_id!r} is not inside the data folder."
        raise StartFailed(ErrorType.SECURITY_ERROR, message, {"host_dir": host_dir})
    return project


class Projects:
    """Projects under `folder`, each named by the id of its archive. A project under its name is complete and never changes."""

    def __init__(self, folder: Path, archives: Archives) -> None:
        self._folder, self._archives = folder, archives

    async def folder_of(self, content: str, tool_id: str, progress: Progress) -> Path:
        """Raises StartFailed: `dependency_error` if the archive is missing or unusable, `unavailable` if it cannot be fetched now."""
        if not re.fullmatch(FILE_ID_PATTERN, content):
            raise StartFailed(ErrorType.SECURITY_ERROR, f"{content!r} of the tool {tool_id!r} is not a file id.", {"content": content})
        target = self._folder / content
        if await asyncio.to_thread(target.is_dir):
            return target
        progress(f"fetching the project of {tool_id}")
        try:
            await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
            async with locked(self._folder / f"{content}.lock"):
                if not await asyncio.to_thread(target.is_dir):
                    await self._unpack(content, target)
        except ContentMissingError as error:
            raise _unusable(tool_id, content, "is not in the content store") from error
        except ContentDamagedError as error:
            message = (
                f"The archive {content} of the tool {tool_id!r} is damaged, and no folder is here that it could be made of again. {_REMEDY}"
            )
            raise StartFailed(ErrorType.UNAVAILABLE, message, {"content": content}) from error
        except UnsafeArchiveError as error:
            raise _unusable(tool_id, content, f"cannot be unpacked: {error}") from error
        except (StoreUnavailableError, OSError) as error:
            message = f"The project of {tool_id!r}, archive {content}, cannot be had now: {error}"
            raise StartFailed(ErrorType.UNAVAILABLE, message, {"content": content}) from error
        return target

    async def sweep(self, wanted: Collection[str]) -> tuple[str, ...]:
        """Remove incomplete projects, and those of all archives not in `wanted`. None of them may be running."""
        return await asyncio.to_thread(self._sweep, frozenset(wanted))

    async def _unpack(self, content: str, target: Path) -> None:
        # Unpacked beside its place, so that a project is complete once its name exists.
        part = _part_beside(target)
        try:
            await asyncio.to_thread(part.mkdir)
            archive = await self._archives.fetch(content, part)
            await asyncio.to_thread(_extract, archive, part / "project")
            await asyncio.to_thread((part / "project").rename, target)
        finally:
            await asyncio.to_thread(discard, part)

    def _sweep(self, wanted: frozenset[str]) -> tuple[str, ...]:
        if not self._folder.is_dir():
            return ()
        gone = [path for path in self._folder.iterdir() if path.stem not in wanted]  # a part has no id for a stem
        for path in gone:
            if path.is_dir():
                discard(_nameless(path))
            else:
                path.unlink(missing_ok=True)
        return tuple(sorted(path.name for path in gone))


def _nameless(project: Path) -> Path:
    """Rename the project to an incomplete one's name: a crash during its removal would leave a part of it."""
    return project if project.suffix == _PART else project.rename(_part_beside(project))


def _part_beside(project: Path) -> Path:
    return project.with_name(f"{project.name}.{secrets.token_hex(4)}{_PART}")


def _unusable(tool_id: str, content: str, why: str) -> StartFailed:
    message = f"The archive {content} of the tool {tool_id!r} {why}. {_REMEDY}"
    return StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"content": content})


def _extract(archive: Path, target: Path) -> None:
    """Raises UnsafeArchiveError."""
    target.mkdir()
    try:
        with tarfile.open(archive, "r:") as tar:
            _require_bounds(tar)
            tar.extractall(target, filter="data")
    except tarfile.TarError as error:
        raise UnsafeArchiveError(str(error)) from error
    _make_read_only(target)


def _require_bounds(tar: tarfile.TarFile) -> None:
    size = 0
    for number, member in enumerate(tar, 1):
        size += member.size
        if number > _MAX_MEMBERS or size > _MAX_BYTES:
            raise UnsafeArchiveError(f"it holds more than {_MAX_MEMBERS} files or {_MAX_BYTES} bytes")
        if len(PurePosixPath(member.name).parts) > _DEEPEST:
            raise UnsafeArchiveError(f"{member.name[:80]!r}… lies in more than {_DEEPEST} folders")
        if not (member.isreg() or member.isdir()):
            raise UnsafeArchiveError(f"{member.name!r} is neither a file nor a folder")


def _make_read_only(folder: Path) -> None:
    """All calls of all versions with this archive share the project. The folder itself stays writable until its rename."""
    for entry in entries(folder):
        Path(entry.path).chmod(_READ_ONLY if entry.is_dir() else entry.stat().st_mode & _READ_ONLY)
