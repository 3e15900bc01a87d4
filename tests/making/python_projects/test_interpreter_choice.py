"""Which Pythons a project may run on."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from engine.making.failures import NotWanted
from engine.making.python_projects.interpreter_choice import interpreters_for
from engine.making.repositories.trees import Tree

THERE = ("3.13", "3.12", "3.11", "3.10", "3.9")


def chosen(folder: Path, files: Mapping[str, str]) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return [*interpreters_for(Tree.read(folder), PurePosixPath(), THERE, "3.11")]


def test_ours_comes_first_then_older_ones_then_newer_ones(tmp_path: Path) -> None:
    assert chosen(tmp_path, {"setup.py": ""}) == ["3.11", "3.10", "3.9", "3.12", "3.13"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.12"\n'}, ["3.12", "3.13"]),
        ({"pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.9,<3.11"\n'}, ["3.10", "3.9"]),
        ({"setup.cfg": "[options]\npython_requires = <3.10\n"}, ["3.9"]),
        ({"setup.py": 'setup(name="x", python_requires=">=3.10,<3.12")\n'}, ["3.11", "3.10"]),
        ({"pyproject.toml": '[project]\nname = "x"\nrequires-python = "==3.10.4"\n'}, ["3.10"]),
    ],
)
def test_what_the_project_requires_is_kept(tmp_path: Path, files: Mapping[str, str], expected: list[str]) -> None:
    assert chosen(tmp_path, files) == expected


@pytest.mark.parametrize(
    ("name", "text"), [(".python-version", "3.9.18\n"), ("runtime.txt", "python-3.9.1"), ("Dockerfile", "FROM python:3.9-slim\n")]
)
def test_the_one_that_its_author_had_goes_before_ours(tmp_path: Path, name: str, text: str) -> None:
    assert chosen(tmp_path, {name: text})[0] == "3.9"


@pytest.mark.parametrize(("image", "first"), [("3.6", "3.9"), ("3.14", "3.13"), ("3.12", "3.12")])
def test_where_it_is_not_there_the_nearest_one_goes_first(tmp_path: Path, image: str, first: str) -> None:
    assert chosen(tmp_path, {"Dockerfile": f"FROM python:{image}-alpine\n"})[0] == first


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotWanted, match=r"'new' \(requires-python in pyproject\.toml\), which cannot be read"):
        chosen(tmp_path, {"pyproject.toml": '[project]\nname = "x"\nrequires-python = "new"\n'})


def test_what_does_not_fit_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NotWanted, match=r"needs Python >=3\.14 \(requires-python in pyproject\.toml\), and this host has 3\.13, "):
        chosen(tmp_path, {"pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.14"\n'})
