"""Chooses the Pythons of this host that a project may run on, the likeliest first."""

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from engine.making.failures import NotWanted
from engine.making.python_sources.poetry import PoetryUnclear, poetry_specifier
from engine.making.python_sources.projects import pyproject_of
from engine.making.repositories.trees import Tree
from engine.runtimes.environments.pythons import minor_of

_NAMED_IN = (".python-version", "runtime.txt")
_IMAGE = re.compile(r"^[ \t]*FROM[ \t]+(?:\S+/)?python:(3\.\d+)", re.IGNORECASE | re.MULTILINE)
_REQUIRES = re.compile(r"\bpython_requires\s*=\s*(?:[\"']([^\"']+)[\"']|([^\s\"'#][^\"'#\n]*))")
_NEWEST_PATCH = 99


def interpreters_for(tree: Tree, folder: PurePosixPath, there: Collection[str], own: str) -> tuple[str, ...]:
    """Minor versions (`3.9`): the one that the project names, or the nearest one that is `there`; then `own`, older and newer ones.

    Raises NotWanted, in one sentence, if none fits. Blocks.
    """
    said, where = _required(tree, folder)
    fitting = [minor for minor in there if _fits(minor, said, where)]
    if not fitting:
        raise NotWanted(f"The project needs Python {said} ({where}), and this host has {', '.join(there) or 'none'}.")
    named = [_nearest(minor, fitting) for minor in _named(tree, folder)]
    return tuple(dict.fromkeys([*named, *sorted(fitting, key=lambda minor: _distance(minor, own))]))


def is_older(minor: str, other: str) -> bool:
    return _number(minor) < _number(other)


def _required(tree: Tree, folder: PurePosixPath) -> tuple[str, str]:
    """The specifier, and the file that has it."""
    about = pyproject_of(tree, folder)
    if said := about.table("project").text("requires-python"):
        return said, "requires-python in pyproject.toml"
    if said := about.table("tool").table("poetry").table("dependencies").text("python"):
        try:
            return poetry_specifier(said), "pyproject.toml"
        except PoetryUnclear as error:
            raise NotWanted(str(error)) from error
    for name in ("setup.cfg", "setup.py"):
        if found := _REQUIRES.search(tree.text(folder / name) or ""):
            return (found[1] or found[2]).strip(), f"python_requires in {name}"
    return "", ""


def _fits(minor: str, said: str, where: str) -> bool:
    """Whether any patch release fits, because the patch version of this host is not known."""
    try:
        wanted = SpecifierSet(said)
    except InvalidSpecifier as error:
        raise NotWanted(f"The project names the Python it needs as {said!r} ({where}), which cannot be read.") from error
    return any(wanted.contains(f"{minor}.{patch}", prereleases=True) for patch in range(_NEWEST_PATCH))


def _named(tree: Tree, folder: PurePosixPath) -> Iterator[str]:
    for place in dict.fromkeys((folder, PurePosixPath())):
        for name in _NAMED_IN:
            if minor := minor_of(tree.text(place / name) or ""):
                yield minor
    images = [path for path in tree.files if path.name.lower().startswith("dockerfile") and path.parent in (folder, PurePosixPath())]
    for path in images:
        if found := _IMAGE.search(tree.text(path) or ""):
            yield found[1]


def _nearest(minor: str, fitting: Collection[str]) -> str:
    """The version itself, else the next newer one, because packages outlive a Python by some versions; else the next older one."""
    return min(fitting, key=lambda one: (_number(one) < _number(minor), abs(_number(one) - _number(minor))))


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])


def _distance(minor: str, own: str) -> tuple[bool, int]:
    """Sorts our own Python first, then older ones: a project that is not made for ours is mostly older."""
    by = _number(minor) - _number(own)
    return by > 0, abs(by)
