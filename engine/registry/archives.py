"""Packs the folders of local tools, so that versions keep their code and any host can run them."""

import asyncio
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from engine.store.content.incoming import pieces_of
from engine.store.files import FileStore, file_id_of
from toolagent.core.failures import ContentDamagedError, FileTooLargeError

_LEFT_OUT = frozenset({".venv", ".git", "node_modules", ".pytest_cache", ".ruff_cache", ".mypy_cache"})
MAX_BYTES = 48 * 1_048_576
"""With the overhead of an archive, this stays below the default limit of a file in the content store."""
MAX_FILES = 15_000
_BY_HASH = (b"\1\0\0\0", b"\3\0\0\0")

Stamp = tuple[tuple[str, int, int, int], ...]
Part = tuple[Path, tuple[str, ...] | None]
"""A folder, and the names below it to pack; None for all."""


class NotPackedError(ValueError):
    """The folder cannot be packed. The message says why and what to do."""


class ProjectArchives:
    """Packs folders. An unchanged folder is not packed again."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._known: dict[Part, tuple[Stamp, str]] = {}
        self._parts: dict[str, set[tuple[Part, str]]] = {}

    async def content_of(self, folder: Path, name: str, given: tuple[str, ...] | None = None) -> str | None:
        """The id of an archive of the folder, or of its `given` files; None if there is no such folder. Raises NotPackedError."""
        part = (folder, given)
        stamp = await asyncio.to_thread(_stamp_of, *part)
        if stamp is None:
            return None
        known = self._known.get(part)
        if known is not None and known[0] == stamp and await self.has(known[1]):
            return known[1]
        file_id = await self._put(await asyncio.to_thread(packed, *part), name)
        self._known[part] = (stamp, file_id)
        self.note(file_id, folder, name, given)
        return file_id

    async def has(self, file_id: str) -> bool:
        """Whether it exists, without reading it."""
        file = await self._files.get(file_id)
        try:
            return file is not None and await self._files.has_content(file)
        except ContentDamagedError:
            return False

    async def remake(self, file_id: str) -> bool:
        """Make this archive again from its folder. False if no folder has the same content any more.

        Raises StoreFullError, ContentUnavailableError.
        """
        for part, name in [*self._parts.get(file_id, ())]:
            try:
                content = await asyncio.to_thread(packed, *part)
                if file_id_of(hashlib.sha256(content).hexdigest(), _file_name(name)) == file_id:
                    return await self._put(content, name) == file_id
            except NotPackedError:
                continue
        return False

    def note(self, file_id: str, folder: Path, name: str, given: tuple[str, ...] | None = None) -> None:
        """Note that the archive may come from this folder."""
        self._parts.setdefault(file_id, set()).add(((folder, given), name))

    async def _put(self, content: bytes, name: str) -> str:
        try:
            file = await self._files.put(pieces_of(content), _file_name(name), "application/x-tar")
        except FileTooLargeError as error:
            raise NotPackedError(f"The folder is too large to be kept: {error}") from error
        return file.file_id


def packed(folder: Path, given: tuple[str, ...] | None = None) -> bytes:
    """A reproducible tar of the folder, or of its `given` files. Blocks. Raises NotPackedError."""
    target = io.BytesIO()
    try:
        with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in _files_in(folder, given):
                _add(archive, path, folder)
    except OSError as error:
        raise NotPackedError(f"The folder cannot be read ({error.strerror}).") from error
    return target.getvalue()


def _add(archive: tarfile.TarFile, path: Path, folder: Path) -> None:
    if path.is_symlink():
        _require_inside(path, folder)
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return
    member = tarfile.TarInfo(path.relative_to(folder).as_posix())
    # A link is packed as its target, so that unpacking needs no links.
    content = path.read_bytes()
    member.size = len(content)
    member.mode = 0o755 if status.st_mode & 0o100 else 0o644
    archive.addfile(member, io.BytesIO(content))


def _require_inside(link: Path, folder: Path) -> None:
    name = link.relative_to(folder)
    try:
        is_inside = link.resolve(strict=True).is_relative_to(folder.resolve())
    except (OSError, RuntimeError) as error:  # a RuntimeError: a loop of links
        raise NotPackedError(f"{name} is a link that leads nowhere, or in a circle. Remove it, or put a file there.") from error
    if not is_inside:
        raise NotPackedError(f"{name} is a link that leads out of the folder. Put a copy there.")


def _files_in(folder: Path, given: tuple[str, ...] | None) -> list[Path]:
    found: list[Path] = []
    size = 0
    for path in _walk(folder) if given is None else (folder / name for name in given):
        found.append(path)
        size += _size(path)
        if size > MAX_BYTES or len(found) > MAX_FILES:
            limit = f"{MAX_BYTES // 1_048_576} MiB" if size > MAX_BYTES else f"{MAX_FILES:,} files"
            raise NotPackedError(f"The folder holds more than {limit}. Fetch what is large when the tool runs.")
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def _size(path: Path) -> int:
    """The size of a link's target. A dangling link is refused later, by its name."""
    try:
        return path.stat().st_size
    except OSError:
        return path.lstat().st_size


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        if links:
            raise NotPackedError(f"{links[0]} is a link to a folder. Put the folder itself there.")
        yield from (path for name in names if _is_kept(path := Path(place) / name))


def _is_kept(path: Path) -> bool:
    """Keeps compiled files only if they are hash-based (PEP 552): those with time stamps come from running the tool."""
    if path.suffix != ".pyc" and path.parent.name != "__pycache__":
        return True
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8)[4:] in _BY_HASH


def _raise(error: OSError) -> None:
    """Report unreadable parts: `os.walk` would skip them."""
    raise error


def _stamp_of(folder: Path, given: tuple[str, ...] | None) -> Stamp | None:
    try:
        if not _is_folder(folder):
            return None
        files = _files_in(folder, given)
        # Include dangling links: with one, the folder cannot be packed.
        found = [(path.relative_to(folder).as_posix(), path.stat() if path.exists() else path.lstat()) for path in files]
    except OSError as error:
        raise NotPackedError(f"The folder cannot be read ({error.strerror}).") from error
    return tuple((name, status.st_mtime_ns, status.st_size, status.st_mode) for name, status in found)


def _is_folder(path: Path) -> bool:
    """Raises OSError without permission, and for a cycle of links."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _file_name(name: str) -> str:
    return f"{name.replace(':', '_')}.tar"
