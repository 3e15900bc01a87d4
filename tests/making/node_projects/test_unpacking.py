"""The output of `npm pack` is unpacked safely, whatever a build has replaced it with."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.making.failures import LockFailed
from engine.making.node_projects.unpacking import unpacked
from engine.making.repositories.packaging import Room

ROOM = Room(1024 * 1024, 50)


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member, content in members:
            tar.addfile(member, io.BytesIO(content))
    return path


def member(name: str, content: bytes = b"x", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    found = tarfile.TarInfo(name)
    found.size, found.mode = len(content), mode
    return found, content


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = tarfile.SYMTYPE, target
    return found, b""


def test_the_files_of_a_package_are_unpacked_and_links_are_not(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.tgz", member("package/dist/cli.js", mode=0o755), member("package/a"), link("package/l", "/etc/passwd"))
    unpacked(made, tmp_path / "into", ROOM)
    assert sorted(path.relative_to(tmp_path / "into").as_posix() for path in (tmp_path / "into").rglob("*")) == ["a", "dist", "dist/cli.js"]
    assert os.access(tmp_path / "into/dist/cli.js", os.X_OK)


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_link(path: Path) -> None:
    archive(path.with_name("other.tgz"), member("package/a"))
    path.symlink_to(path.with_name("other.tgz"))


def as_cut(path: Path) -> None:
    whole = archive(path, member("package/a", os.urandom(100_000))).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def as_spoilt(path: Path) -> None:
    whole = bytearray(archive(path, member("package/a", os.urandom(100_000))).read_bytes())
    whole[50_000:50_020] = b"\0" * 20
    path.write_bytes(whole)


def as_text(path: Path) -> None:
    path.write_text("no archive")


def as_bomb(path: Path) -> None:
    archive(path, member("package/a", bytes(8 * 1024 * 1024)))


def as_many(path: Path) -> None:
    archive(path, *(member(f"package/{number}", b"") for number in range(51)))


def as_many_folders(path: Path) -> None:
    folder = tarfile.TarInfo("package/a")
    folder.type = tarfile.DIRTYPE
    archive(path, *((folder, b"") for _ in range(51)))


def as_large(path: Path) -> None:
    path.write_bytes(os.urandom(2 * 1024 * 1024))


def as_headers(path: Path) -> None:
    """A long name that is never used for a file."""
    told = tarfile.TarInfo("x")
    told.type, told.size = tarfile.GNUTYPE_LONGNAME, 64 * 1024 * 1024
    with gzip.open(path, "wb") as file:
        file.write(told.tobuf(tarfile.GNU_FORMAT) + bytes(told.size))


def as_sparse(path: Path) -> None:
    """A map of many million holes, each of which would be a number in memory."""
    made = tarfile.TarInfo("package/a")
    made.pax_headers = {"GNU.sparse.map": ",".join(["0"] * 20_000), "GNU.sparse.size": "1"}
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(made)


def as_sparse_of_old(path: Path) -> None:
    made = tarfile.TarInfo("package/a")
    made.type = tarfile.GNUTYPE_SPARSE
    archive(path, (made, b""))


def as_climber(path: Path) -> None:
    archive(path, member("package/../../out"))


def as_file_in_a_file(path: Path) -> None:
    archive(path, member("package/a"), member("package/a/b"))


ATTACKS = (
    as_pipe,
    as_link,
    as_cut,
    as_spoilt,
    as_text,
    as_bomb,
    as_many,
    as_many_folders,
    as_large,
    as_headers,
    as_sparse,
    as_sparse_of_old,
    as_climber,
    as_file_in_a_file,
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_no_package_fails_and_costs_little(tmp_path: Path, attack: Callable[[Path], None]) -> None:
    attack(tmp_path / "a.tgz")
    with pytest.raises(LockFailed):
        unpacked(tmp_path / "a.tgz", tmp_path / "into", ROOM)
    there = [path for path in (tmp_path / "into").rglob("*") if path.is_file()] if (tmp_path / "into").exists() else []
    assert sum(path.stat().st_size for path in there) <= ROOM.size
    assert len(there) <= ROOM.files
    assert not (tmp_path / "out").exists()


def test_an_archive_that_is_not_there_fails(tmp_path: Path) -> None:
    with pytest.raises(LockFailed):
        unpacked(tmp_path / "a.tgz", tmp_path / "into", ROOM)


def test_source_maps_take_no_room(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.tgz", member("package/a.js"), member("package/a.js.map", bytes(2 * ROOM.size)))
    unpacked(made, tmp_path / "into", ROOM)
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["a.js"]
