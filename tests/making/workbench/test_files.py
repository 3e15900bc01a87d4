"""Files of a task are written completely, once for each use, and nowhere else."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.making.workbench.files import BenchFiles
from engine.making.workbench.places import WORK, Area, place_of
from engine.making.workbench.refusal import BenchRefused


@pytest.fixture
def files(tmp_path: Path) -> BenchFiles:
    for name in ("work", "logs", "uses"):
        (tmp_path / "bench" / name).mkdir(parents=True)
    return BenchFiles(tmp_path / "bench", tmp_path / "bench" / "uses")


def test_a_file_is_written_and_added_to(files: BenchFiles) -> None:
    assert files.write(place_of("a/b.txt"), "één\n", "overwrite", "1").size == 6
    assert files.write(place_of(f"{WORK}/a/b.txt"), "two\n", "append", "2").path == f"{WORK}/a/b.txt"
    assert files.read(place_of("a/b.txt")) == "één\ntwo\n"
    files.write(place_of("a/b.txt"), "x", "overwrite", "3")
    assert files.text(place_of("a/b.txt")) == "x"


def test_a_use_that_is_repeated_appends_once(files: BenchFiles) -> None:
    first = files.write(place_of("b.txt"), "x", "append", "1")
    files.write(place_of("b.txt"), "y", "append", "2")
    assert files.write(place_of("b.txt"), "x", "append", "1") == first
    assert files.text(place_of("b.txt")) == "xy"


@pytest.mark.parametrize(
    "path",
    [
        "",
        " ",
        "../x",
        "a/../../x",
        "/etc/passwd",
        "/work/../etc/passwd",
        "//etc/passwd",
        "/workbench/x",
        "a\0b",
        "a\nb",
        "~/../x",
        "x" * 300,
        "/".join("a" * 60),
    ],
)
def test_paths_that_lead_elsewhere_are_refused(path: str) -> None:
    with pytest.raises(BenchRefused):
        place_of(path)


@pytest.mark.promise("agents-stay-inside")
@given(st.text(max_size=60))
def test_whatever_is_named_is_below_the_two_folders(text: str) -> None:
    try:
        place = place_of(text)
    except BenchRefused:
        return
    assert ".." not in place.parts
    assert str(place).startswith(("/work", "/logs"))


def test_links_are_not_followed(files: BenchFiles, tmp_path: Path) -> None:
    secret, work = tmp_path / "secret", tmp_path / "bench" / "work"
    secret.mkdir()
    (secret / "key").write_text("key")
    (work / "out").symlink_to(secret)
    (work / "file").symlink_to(secret / "key")
    for path in ("out/key", "file", "out"):
        with pytest.raises(BenchRefused):
            files.read(place_of(path))
    with pytest.raises(BenchRefused):
        files.write(place_of("out/new"), "x", "overwrite", "1")
    with pytest.raises(BenchRefused):
        files.write(place_of("file"), "x", "append", "2")
    # The link itself makes room for the file.
    files.write(place_of("file"), "x", "overwrite", "3")
    assert (secret / "key").read_text() == "key"
    assert [path.name for path in secret.iterdir()] == ["key"]
    assert files.text(place_of("file")) == "x"


def test_what_cannot_be_shown_is_said(files: BenchFiles, tmp_path: Path) -> None:
    work = tmp_path / "bench" / "work"
    (work / "binary").write_bytes(b"\xff\x00\x01")
    (work / "folder").mkdir()
    (work / "folder" / "inside").touch()
    os.mkfifo(work / "pipe")
    with (work / "huge").open("wb") as file:
        file.truncate(1 << 30)
    for path, told in (
        ("binary", "binary"),
        ("folder", "inside"),
        ("pipe", "regular"),
        ("huge", "bytes"),
        ("none", "folder"),
        ("binary/x", "folder"),
    ):
        with pytest.raises(BenchRefused, match=told):
            files.read(place_of(path))
    for path in ("folder", "/work", "/logs/x"):
        with pytest.raises(BenchRefused):
            files.write(place_of(path), "x", "overwrite", path)
    with pytest.raises(BenchRefused):
        files.write(place_of("x"), "x" * (5 << 20), "overwrite", "1")
    with pytest.raises(BenchRefused):
        files.write(place_of("x"), "\ud800", "overwrite", "2")


def test_a_long_file_is_read_on(files: BenchFiles) -> None:
    text = "".join(f"line {number}\n" for number in range(4_000))
    files.write(place_of("long"), text, "overwrite", "1")
    shown = files.read(place_of("long"))
    offset = int(shown.rsplit("offset ", 1)[1].split()[0])
    assert files.read(place_of("long"), offset).startswith(text[offset : offset + 100])
    assert files.read(place_of("long"), 5, 10).startswith(text[5:10])
    assert place_of("/logs/x").area is Area.LOGS
