"""The levels of strictness for a project's dependencies: its lock, its declarations, and these with looser pins."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeAlias

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from engine.making.failures import NotWanted
from engine.making.python_sources.wanted import Locked, Wanted, declared_of, locked_of
from engine.making.repositories.trees import Tree

Step: TypeAlias = Callable[[SpecifierSet], SpecifierSet]


@dataclass(frozen=True, slots=True)
class Level:
    """`name` is for the evidence. `is_lock`: each version is fixed; `is_guess`: the project does not claim to run with these."""

    name: str
    wanted: Wanted
    is_loose: bool = False
    is_guess: bool = False
    is_lock: bool = False


def levels_of(tree: Tree, folder: PurePosixPath, required: Sequence[str] | None = None) -> tuple[Level, ...]:
    """The levels, the strictest first. `required` is from the built package, for projects without declarations.

    Raises NotWanted. Blocks.
    """
    locked = locked_of(tree, folder)
    found = [*_of_lock(locked)] if locked is not None else []
    try:
        declared = declared_of(tree, folder)
    except NotWanted:
        if required is None and not found:
            raise
        declared = Wanted(tuple(required)) if required is not None else None
    if declared is not None:
        found.append(Level("what the project declares", declared))
        found += _loosened(declared)
    return tuple(found)


def _of_lock(locked: Locked) -> Iterator[Level]:
    """The lock, and its major versions for the case that the locked versions are too old to be built here."""
    yield Level(f"versions of {locked.name}", locked.wanted, is_lock=True)
    if not (locked.wanted.is_lock or locked.wanted.uv_lock):
        lines, pins = (loosened(one, _to_major) for one in (locked.wanted.lines, locked.wanted.pins))
        yield Level(f"major versions of {locked.name}", replace(locked.wanted, lines=lines, pins=pins), is_guess=True)


def _loosened(declared: Wanted) -> Iterator[Level]:
    before = declared.lines
    steps = (("pins held to their major version", _to_major), ("pins taken away", _to_nothing))
    for name, step in steps:
        lines = loosened(declared.lines, step)
        if lines != before:
            yield Level(name, replace(declared, lines=lines, files={}, pins=()), is_loose=True)
        before = lines


def _to_major(specifiers: SpecifierSet) -> SpecifierSet:
    """`==1.2.3` becomes `>=1.2.3,<2`."""
    found: list[str] = []
    for one in specifiers:
        try:
            version = Version(one.version.removesuffix(".*")) if one.operator in ("==", "===") else None
        except InvalidVersion:
            version = None
        found += [str(one)] if version is None else [f">={version}", f"<{version.major + 1}"]
    return SpecifierSet(",".join(found))


def _to_nothing(specifiers: SpecifierSet) -> SpecifierSet:
    """Lower bounds stay."""
    return SpecifierSet(",".join(str(one) for one in specifiers if one.operator in (">=", ">", "!=")))


def loosened(lines: Sequence[str], step: Step) -> tuple[str, ...]:
    """Loosens the requirements; other lines (options, comments) stay as they are."""
    return tuple(_loose(line, step) for line in lines)


def _loose(line: str, step: Step) -> str:
    try:
        requirement = Requirement(line.partition(" #")[0].strip())
    except (InvalidRequirement, RecursionError):
        return line
    if requirement.url is None:
        requirement.specifier = step(requirement.specifier)
    return str(requirement)
