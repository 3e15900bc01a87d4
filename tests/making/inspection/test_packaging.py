"""Our own copies are outside of the limits of a sandbox: a copy is complete or absent, and fits the disk."""

import os
from pathlib import Path

import pytest

from engine.making.repositories.packaging import Room, pack_repository, require_fit
from tests.making.inspection.deep import deep_folder

MIB = 1 << 20


def test_a_link_counts_as_the_file_that_it_leads_to(tmp_path: Path) -> None:
    folder = tmp_path / "origin"
    folder.mkdir()
    (folder / "a").write_bytes(b"x" * MIB)
    for number in range(9):
        (folder / f"link{number}").symlink_to("a")
    for room in (Room(5 * MIB, 100), Room(100 * MIB, 5)):
        with pytest.raises(ValueError, match="link"):
            require_fit(folder, room)
        with pytest.raises(ValueError, match="link"):
            pack_repository(folder, tmp_path / "packed", room)
        assert sum(path.stat().st_size for path in (tmp_path / "packed").iterdir()) == 5 * MIB
    pack_repository(folder, tmp_path / "packed", Room(10 * MIB, 10))


def test_holes_count_as_what_is_written_for_them(tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    with (tmp_path / "origin" / "sparse").open("wb") as file:
        file.truncate(49 * MIB)
    with pytest.raises(ValueError, match="sparse"):
        pack_repository(tmp_path / "origin", tmp_path / "packed")
    assert not list((tmp_path / "packed").iterdir())


def test_nothing_is_left_out_for_its_depth_or_its_name(tmp_path: Path) -> None:
    folder = tmp_path.joinpath("origin", *("d",) * 50)
    folder.mkdir(parents=True)
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/\xff"))
    odd.write_text("odd")
    pack_repository(tmp_path / "origin", tmp_path / "packed")
    assert (tmp_path / "packed" / odd.relative_to(tmp_path / "origin")).read_text() == "odd"


def test_what_is_deeper_than_python_goes_is_refused(tmp_path: Path) -> None:
    with deep_folder(tmp_path / "origin"), pytest.raises(ValueError, match="folders"):
        require_fit(tmp_path / "origin", Room())


def test_links_that_lead_nowhere_or_in_a_circle_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    (tmp_path / "origin" / "circle").symlink_to("circle")
    (tmp_path / "origin" / "nowhere").symlink_to("gone")
    pack_repository(tmp_path / "origin", tmp_path / "packed")
    assert not list((tmp_path / "packed").iterdir())


def test_a_path_that_is_too_long_is_the_fault_of_who_made_it(tmp_path: Path) -> None:
    with deep_folder(tmp_path / "origin", "d" * 250, 20), pytest.raises(ValueError, match="too long"):
        require_fit(tmp_path / "origin", Room())
