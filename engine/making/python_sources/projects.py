"""Reads the files in which projects declare metadata and dependencies."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import cast

from packaging.utils import canonicalize_name

from engine.making.repositories.trees import Tree

PYPROJECT = "pyproject.toml"
_SAYING = ("uv.lock", "poetry.lock", "Pipfile.lock", "Pipfile", "requirements.lock", "requirements.txt", "setup.py", "setup.cfg")
_MAX_BYTES = 256 * 1024
_TEXT = re.compile(
    r'"""(?:[^"\\]++|\\.|"{1,2}+(?!"))*+"{0,5}+|' + r"'''(?:[^']++|'{1,2}+(?!'))*+'{0,5}+|"
    r'"(?:[^"\\\n]++|\\[^\n])*+"?+|' + r"'[^'\n]*+'?+|#[^\n]*+",
    re.DOTALL,
)
"""A text or a comment of TOML, closed or not."""
_KEY = re.compile(r"(?:[\w-]++[ \t]*+\.?+[ \t]*+)++")
_MOST_PARTS = 200
"""The time and memory to read a TOML key grow with the square of its parts."""
_MOST_LINES, _LONGEST_LINE = 5_000, 500
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of TOML or an object of JSON. Missing values, and values of other types, are empty."""

    values: Mapping[str, object] = field(default_factory=dict[str, object])

    @classmethod
    def of(cls, value: object) -> "Table":
        return cls(cast("dict[str, object]", value)) if isinstance(value, dict) else cls()

    def table(self, name: str) -> "Table":
        return Table.of(self.values.get(name))

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name)
        return tuple(one for one in cast("list[object]", value) if isinstance(one, str)) if isinstance(value, list) else ()

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


def pyproject_of(tree: Tree, folder: PurePosixPath) -> Table:
    """Empty if there is no readable pyproject.toml. Blocks."""
    return toml_of(tree, folder / PYPROJECT, _MAX_BYTES)


def toml_of(tree: Tree, path: PurePosixPath, limit: int) -> Table:
    """Empty if there is no readable file within the limit of bytes. Blocks."""
    text = tree.text(path, limit) or ""
    if any(key[0].count(".") > _MOST_PARTS for key in _KEY.finditer(_TEXT.sub("a", text))):
        return Table()
    try:
        return Table(tomllib.loads(text))
    except (RecursionError, ValueError):
        return Table()


def readable_ini(text: str) -> str:
    """The text without long lines, up to a number of lines, because configparser's time grows with the square of both."""
    return "\n".join(line for line in text.split("\n")[:_MOST_LINES] if len(line) <= _LONGEST_LINE)


def json_of(text: str | None) -> Table:
    """Empty if the text is no JSON object. Blocks."""
    try:
        return Table.of(json.loads(text or ""))
    except (ValueError, RecursionError):
        return Table()


def folder_text(folder: PurePosixPath) -> str:
    """Empty for the top of the repository."""
    return folder.as_posix() if folder.parts else ""


def is_project(tree: Tree, folder: PurePosixPath) -> bool:
    """Whether a folder declares dependencies. Blocks."""
    if any(tree.has(folder / name) for name in _SAYING):
        return True
    about = pyproject_of(tree, folder)
    return bool(about.table("project").values or about.table("tool").table("poetry").values)


def project_folder(tree: Tree, path: PurePosixPath) -> PurePosixPath | None:
    """The nearest folder above a file that declares dependencies. Blocks."""
    return next((folder for folder in path.parents if is_project(tree, folder)), None)


def dependencies_named(tree: Tree, folder: PurePosixPath) -> frozenset[str]:
    """The normalised names of a project's direct dependencies. Blocks."""
    about = pyproject_of(tree, folder)
    requirements = (
        *about.table("project").texts("dependencies"),
        *about.table("tool").table("poetry").table("dependencies").values,
        *(tree.text(folder / "requirements.txt") or "").splitlines(),
    )
    return frozenset(canonicalize_name(found[1]) for found in map(_NAME.match, requirements) if found)
