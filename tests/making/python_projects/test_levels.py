"""The levels of a project's dependencies, the strictest first."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from engine.making.failures import NotWanted
from engine.making.python_projects.levels import levels_of
from engine.making.repositories.trees import Tree


def lines(folder: Path, files: Mapping[str, str], required: tuple[str, ...] | None = None) -> dict[str, tuple[str, ...]]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return {level.name: level.wanted.lines for level in levels_of(Tree.read(folder), PurePosixPath(), required)}


def test_pins_are_loosened_step_by_step(tmp_path: Path) -> None:
    assert lines(tmp_path, {"requirements.txt": "flask==2.0.1\nnumpy>=1.2,<1.20\n# note\n"}) == {
        "what the project declares": ("flask==2.0.1", "numpy>=1.2,<1.20", "# note"),
        "pins held to their major version": ("flask<3,>=2.0.1", "numpy<1.20,>=1.2", "# note"),
        "pins taken away": ("flask", "numpy>=1.2", "# note"),
    }


def test_what_is_not_pinned_is_not_loosened(tmp_path: Path) -> None:
    assert list(lines(tmp_path, {"requirements.txt": "flask\n"})) == ["what the project declares"]


PIPFILE_LOCK = (
    '{"default": {"flask": {"version": "==2.0.1", "extras": ["async"], "markers": "python_version >= \'3.6\'"}, "own": {"path": "."}}}'
)


def test_a_lock_of_pipenv_is_kept(tmp_path: Path) -> None:
    found = lines(tmp_path, {"Pipfile": '[packages]\nflask = "*"\nrich = ">=1"\n', "Pipfile.lock": PIPFILE_LOCK})
    assert found["versions of Pipfile.lock"] == ("flask[async]==2.0.1 ; python_version >= '3.6'",)
    assert found["major versions of Pipfile.lock"] == ('flask[async]<3,>=2.0.1; python_version >= "3.6"',)
    assert found["what the project declares"] == ("flask", "rich>=1")


UV_LOCK = """\
version = 1

[[package]]
name = "leaf"
version = "1.0"

[[package]]
name = "leaf"
version = "2.1rc1"

[[package]]
name = "own"
source = { editable = "." }
dependencies = [{ name = "leaf", version = "1.0" }]
"""


@pytest.mark.parametrize(
    ("declared", "locked"),
    [
        ("leaf==1.0", ["versions of uv.lock"]),
        ("Leaf>=2.0", ["versions of uv.lock"]),
        ("own[all]>=1", ["versions of uv.lock"]),
        ("leaf>=3; python_version < '3'", ["versions of uv.lock"]),
        ("leaf>=3", []),
        ("twig", []),
    ],
)
def test_a_lock_of_uv_is_kept_while_its_versions_fit_and_gives_way_to_no_older_lock(
    tmp_path: Path, declared: str, locked: list[str]
) -> None:
    project = f'[project]\nname = "own"\nversion = "1"\ndependencies = ["{declared}"]\n'
    found = lines(tmp_path, {"pyproject.toml": project, "uv.lock": UV_LOCK, "Pipfile.lock": PIPFILE_LOCK})
    assert [name for name in found if name.startswith("versions of")] == locked


def test_a_project_that_says_it_in_its_build_is_asked_by_building_it(tmp_path: Path) -> None:
    files = {"setup.py": "setup()"}
    assert lines(tmp_path, files, ("click>=8",)) == {"what the project declares": ("click>=8",)}
    with pytest.raises(NotWanted):
        lines(tmp_path, files)
