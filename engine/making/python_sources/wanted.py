"""Reads a Python project's dependencies as requirements, and its own lock if it can be used."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import cast

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from engine.making.failures import NotWanted
from engine.making.python_sources.poetry import PoetryUnclear, poetry_requirements
from engine.making.python_sources.projects import PYPROJECT, Table, json_of, pyproject_of, toml_of
from engine.making.repositories.trees import Tree

_MAX_LOCK = 16 * 1024 * 1024
_ITSELF = re.compile(r"(?:-e\s+|--editable[= ])?\.(?:/|\[[^\]]*\])?\s*(?:#.*)?")
_INDEX = re.compile(r"\s*(?:-i\b|-f\b|--index-url|--extra-index-url|--find-links|--trusted-host|--no-index|--pre\b)")
_LOCKED = re.compile(r'^name = "([^"]+)"(?:\r?\nversion = "([^"]+)")?', re.MULTILINE)
_ELSEWHERE = ("git", "path", "url", "workspace")


@dataclass(frozen=True, slots=True)
class Wanted:
    """`lines` are requirements, `pins` are locked versions, `files` are files that `lines` may include.

    `uv_lock`: the project's own uv.lock and pyproject.toml; then the rest is empty.
    """

    lines: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    uv_lock: Mapping[str, str] = field(default_factory=dict[str, str])
    is_lock: bool = False
    """The lines are a lock with hashes."""


@dataclass(frozen=True, slots=True)
class Locked:
    """A lock; `name` is that of its file."""

    name: str
    wanted: Wanted


def locked_of(tree: Tree, folder: PurePosixPath) -> Locked | None:
    """None without a lock, or if uv.lock is older than the project's declarations. Raises NotWanted. Blocks."""
    about = pyproject_of(tree, folder)
    _require_index(about)
    lock = tree.text(folder / "requirements.lock", _MAX_LOCK)
    if lock is not None and "--hash=" in lock:
        return Locked("requirements.lock", Wanted(tuple(lock.splitlines()), is_lock=True))
    uv_lock, text = tree.text(folder / "uv.lock", _MAX_LOCK), tree.text(folder / PYPROJECT)
    if uv_lock is not None and text is not None:
        # Another tool's lock beside it is older still.
        return Locked("uv.lock", Wanted(uv_lock={"uv.lock": uv_lock, PYPROJECT: text})) if _is_of(uv_lock, about) else None
    if pins := _pins(tree, folder):
        return Locked("poetry.lock", replace(declared_of(tree, folder), pins=pins))
    if lines := (*_pipfile_lock(tree.text(folder / "Pipfile.lock", _MAX_LOCK)),):
        return Locked("Pipfile.lock", Wanted(lines))
    return None


def _is_of(uv_lock: str, about: Table) -> bool:
    """Whether the lock has all declared dependencies in fitting versions; otherwise uv would write it anew.

    A requirement with a marker may be missing. A package without a version, such as the project itself, fits.
    """
    known: dict[str, list[str]] = {}
    for name, version in cast("list[tuple[str, str]]", _LOCKED.findall(uv_lock)):
        known.setdefault(canonicalize_name(name), []).append(version)

    def has(one: Requirement) -> bool:
        versions = known.get(canonicalize_name(one.name), ())
        return any(not version or one.specifier.contains(version, prereleases=True) for version in versions)

    with suppress(InvalidRequirement, RecursionError):
        return all(one.marker or has(one) for one in map(Requirement, about.table("project").texts("dependencies")))
    return True


def declared_of(tree: Tree, folder: PurePosixPath) -> Wanted:
    """The project's own declarations. Raises NotWanted. Blocks."""
    about = pyproject_of(tree, folder)
    _require_index(about)
    return Wanted((*_declared(tree, folder, about),), files=dict(_included(tree, folder)))


def _require_index(about: Table) -> None:
    """Raises NotWanted for packages from elsewhere, whose names may belong to other packages on the index."""
    sources = about.table("tool").table("uv").table("sources")
    for name in sources.values:
        if any(where in sources.table(name).values for where in _ELSEWHERE):
            raise NotWanted(f"The project takes {name!r} from elsewhere than the package index (`tool.uv.sources`).")


def _declared(tree: Tree, folder: PurePosixPath, about: Table) -> Iterator[str]:
    project, poetry = about.table("project"), about.table("tool").table("poetry")
    requirements = tree.text(folder / "requirements.txt")
    if "dependencies" in project.values:
        yield from project.texts("dependencies")
    elif poetry.values:
        try:
            yield from poetry_requirements(poetry.table("dependencies"))
        except PoetryUnclear as error:
            raise NotWanted(str(error)) from error
    elif requirements is not None:
        yield from _of_requirements(requirements)
    elif pipfile := toml_of(tree, folder / "Pipfile", _MAX_LOCK).table("packages").values:
        yield from _of_pipfile(pipfile)
    elif not project.values or "dependencies" in project.texts("dynamic"):
        raise NotWanted("The project does not say what it depends on in a file that can be read.")


def _of_pipfile(packages: Mapping[str, object]) -> Iterator[str]:
    for name, value in packages.items():
        version = value if isinstance(value, str) else Table.of(value).text("version")
        yield name if version in ("", "*") else f"{name}{version}"


def _pipfile_lock(text: str | None) -> Iterator[str]:
    """The locked packages of an index, as requirements."""
    packages = json_of(text).table("default")
    for name in packages.values:
        about = packages.table(name)
        extras = f"[{','.join(about.texts('extras'))}]" if about.texts("extras") else ""
        markers = f" ; {about.text('markers')}" if about.text("markers") else ""
        if about.text("version").startswith("=="):
            yield f"{name}{extras}{about.text('version')}{markers}"


def _of_requirements(text: str) -> Iterator[str]:
    """The requirements without the project itself, and without indexes, which this host chooses."""
    yield from (line for line in text.splitlines() if not _ITSELF.fullmatch(line.strip()) and not _INDEX.match(line))


def _included(tree: Tree, folder: PurePosixPath) -> Iterator[tuple[str, str]]:
    """Files that a requirements.txt may include, by relative path."""
    for path in tree.files:
        if path.is_relative_to(folder) and path.suffix == ".txt" and re.search(r"requirement|constraint|base|common", path.as_posix()):
            text = tree.text(path)
            if text is not None and path.name != "requirements.txt":
                yield path.relative_to(folder).as_posix(), "\n".join(_of_requirements(text)) + "\n"


def _pins(tree: Tree, folder: PurePosixPath) -> tuple[str, ...]:
    """The versions in poetry.lock, of packages from an index."""
    packages = toml_of(tree, folder / "poetry.lock", _MAX_LOCK).values.get("package")
    versions: dict[str, str] = {}
    doubled: set[str] = set()
    for one in map(Table.of, cast("list[object]", packages) if isinstance(packages, list) else ()):
        name, version = canonicalize_name(one.text("name")), one.text("version")
        if name in versions:
            # A package with several versions, for different machines, is not pinned.
            doubled.add(name)
        if name and re.fullmatch(r"[0-9A-Za-z.+!_-]+", version) and not one.table("source").text("url"):
            versions[name] = version
    return tuple(f"{name}=={version}" for name, version in versions.items() if name not in doubled)
