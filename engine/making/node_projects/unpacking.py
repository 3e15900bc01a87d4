"""Unpacks archives of `npm pack`: only plain files, counted before they are written."""

import gzip
import os
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from engine.making.failures import LockFailed
from engine.making.node_projects.plain_files import opened
from engine.making.repositories.packaging import Room

_MIB = 1024 * 1024
_DEEPEST = 100
_FOR_HEADERS = 2048
"""Bytes that an archive may have for each file besides its content."""
_NOT_RUN = (".js.map", ".mjs.map", ".cjs.map", ".css.map")
"""Files for debuggers, often larger than all others."""
_AS_MUCH = 4
"""An archive may unpack to so many times the room, including files that are not kept."""
_CHUNK = 64 * 1024
_LONGEST_HEADER = 64 * 1024
_HEADERS = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_BROKEN = (EOFError, zlib.error, tarfile.TarError, ValueError, RecursionError, OverflowError, OSError)


class _TooMuch(Exception):
    """The content exceeds the room."""


def unpacked(archive: Path, into: Path, room: Room) -> None:
    """Unpacks an untrusted archive to the new folder `into`. Raises LockFailed. Blocks."""
    try:
        with os.fdopen(opened(archive), "rb") as file:
            _require_small(os.fstat(file.fileno()).st_size, room)
            into.mkdir(parents=True)
            most = room.size * _AS_MUCH + room.files * _FOR_HEADERS
            _require_small_headers(_Bounded(gzip.GzipFile(fileobj=file), most))
            file.seek(0)
            bounded = _Bounded(gzip.GzipFile(fileobj=file), most)
            # As a stream, so that nothing is read twice.
            with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r|") as tar:
                for member, path in _fitting(tar, room):
                    _written(tar, member, into / path)
            # To its end, where the checksum is.
            while bounded.read(_CHUNK):
                pass
    except _TooMuch as error:
        most = f"{room.size // _MIB} MiB and {room.files:,} files"
        raise LockFailed(f"The project cannot be packed: {error}, and a tool may have {most}. Leave out what it does not need.") from error
    except _BROKEN as error:
        raise LockFailed(
            f"The project cannot be packed: what npm made of it cannot be unpacked: {error or type(error).__name__}"
        ) from error


def _require_small(size: int, room: Room) -> None:
    if size > room.size:
        raise _TooMuch(f"the archive is {size / _MIB:.1f} MiB")


def _require_small_headers(archive: "_Bounded") -> None:
    """Refuses long names and maps of sparse files, which `tarfile` would read into memory as a whole. Raises _TooMuch, TarError."""
    while (block := archive.read(tarfile.BLOCKSIZE)).strip(b"\0"):
        told = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        left = -(-told.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        if told.type == tarfile.GNUTYPE_SPARSE:
            raise ValueError("it holds a sparse file")
        if told.type in _HEADERS:
            if told.size > _LONGEST_HEADER:
                raise _TooMuch(f"it holds a name, or what is said of a file, of {told.size:,} bytes")
            if b"GNU.sparse" in archive.read(left):
                raise ValueError("it holds a sparse file")
            continue
        while left > 0 and (part := archive.read(min(left, _CHUNK))):
            left -= len(part)


class _Bounded:
    """Unpacks at most so many bytes."""

    def __init__(self, file: gzip.GzipFile, most: int) -> None:
        self._file, self._left = file, most

    def read(self, size: int) -> bytes:
        found = self._file.read(size)
        self._left -= len(found)
        if self._left < 0:
            raise _TooMuch("very much comes out of the archive")
        return found


def _fitting(tar: tarfile.TarFile, room: Room) -> Iterator[tuple[tarfile.TarInfo, PurePosixPath]]:
    """The files and their targets. npm puts all files into one folder, and packs no links or devices."""
    size = count = 0
    for member in tar:
        path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
        count += 1
        if not member.isreg() or path.name.endswith(_NOT_RUN):
            if count > room.files:
                raise _TooMuch("it holds too many entries")
            continue
        if not path.parts or ".." in path.parts or member.name.startswith("/") or len(path.parts) > _DEEPEST:
            raise ValueError(f"{member.name[:200]!r} is no file of a package")
        size += member.size
        if size > room.size or count > room.files:
            raise _TooMuch(f"with {path.as_posix()[:200]} it holds {size / _MIB:.1f} MiB in {count:,} files")
        yield member, path


def _written(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise ValueError(f"{member.name[:200]!r} cannot be read")
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("wb") as file:
        while chunk := source.read(_CHUNK):
            file.write(chunk)
    target.chmod(0o755 if member.mode & 0o111 else 0o644)
