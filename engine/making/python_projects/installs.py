"""Installs a project's own package into a folder, by its build backend in the sandbox, and reads the package's metadata."""

import asyncio
import configparser
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.boxes import left_in
from engine.making.failures import LockFailed
from engine.making.repositories.packaging import BUILDING, Room, pack_repository
from engine.making.repositories.trees import LEFT_OUT
from engine.making.uv.runs import WORK, UvRuns
from engine.runtimes.environments.indexes import Index
from engine.runtimes.environments.programs import Program

_SOURCE, _SITE = "source", "site"
_WHAT = "The project cannot be built"
_MOST_BYTES = 4 * 1024 * 1024
_MOST_REQUIRED = 2_000
_FOR_ALL = 0o777
_WITH_COMPILED = Room(12 * 1024 * 1024, 4_000, LEFT_OUT - {"__pycache__"})
"""A larger package is kept without compiled files, so that there is room for the rest of the tool."""
_GIT_VERSIONS = (
    *("SETUPTOOLS_SCM_PRETEND_VERSION", "VCS_VERSIONING_PRETEND_VERSION", "PDM_BUILD_SCM_VERSION", "PBR_VERSION"),
    *("POETRY_DYNAMIC_VERSIONING_BYPASS", "UV_DYNAMIC_VERSIONING_BYPASS", "VERSIONINGIT_DEFAULT_VERSION"),
)
_WITHOUT_GIT = {str(name): "0.0.0" for name in _GIT_VERSIONS}
"""The version for backends that take it from git, which is not there."""
_PYTHON = re.compile(r"#!.*python")
_COMPILE = ("-m", "compileall", "-q", "--invalidation-mode", "checked-hash")
"""Compiled files are checked by hash, because kept files get other times, and may be repaired."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A package in the folder `site`. `scripts` are programs by name (`module:function` or a file); `requires` is without extras."""

    site: Path
    name: str
    version: str
    requires: tuple[str, ...] = ()
    scripts: Mapping[str, str] = field(default_factory=dict[str, str])


class ProjectInstalls:
    """Uses uv and the build backends that projects name."""

    def __init__(self, runs: UvRuns) -> None:
        self._runs = runs

    async def install(self, repository: Path, project: str, into: Path, site: Path, python: Program) -> Installed:
        """Installs the package of the folder `project` into the folder `site`, which is made anew, without dependencies.

        `into` is a work folder, emptied first and removed afterwards. Raises LockFailed, ScriptFailure, OSError, ValueError.
        """
        await asyncio.to_thread(remove, into)
        try:
            await asyncio.to_thread(_prepare, repository, into)
            await self._runs.prepare(into)
            index = await self._runs.index()
            if index.passwords:
                raise LockFailed(f"{_WHAT}: the address of the package index holds a password, which a build would see.")
            source = into / WORK / _SOURCE / project
            options = ("--no-deps", "--quiet", "--python", str(python.file), "--target", str(into / WORK / _SITE))
            await self._runs.take(("pip", "install", *options, str(source)), into, index, python, _WHAT, _WITHOUT_GIT)
            await self._compile(into, index, python)
            return await asyncio.to_thread(_taken, into / WORK / _SITE, site)
        finally:
            await asyncio.shield(asyncio.to_thread(discard, into))

    async def _compile(self, into: Path, index: Index, python: Program) -> None:
        """Compiles the package, because calls cannot write and would compile it each time. Failures do not matter."""
        run = ("run", "--no-project", "--quiet", "--python", str(python.file), "--", "python", *_COMPILE, _SITE)
        with contextlib.suppress(LockFailed):
            await self._runs.take(run, into, index, python, _WHAT)


def _prepare(repository: Path, into: Path) -> None:
    """Copies the repository, because backends write to it."""
    source = into / WORK / _SOURCE
    pack_repository(repository, source, BUILDING)
    for path in (into / WORK, source, *(path for path in source.rglob("*") if path.is_dir())):
        path.chmod(_FOR_ALL)


def _taken(built: Path, site: Path) -> Installed:
    """Raises LockFailed, OSError."""
    if built.is_symlink():
        # A build may write to the parent folder, so it could put a link to any place of this host here.
        raise LockFailed(f"{_WHAT}: its build put a link in the place of what it should install.")
    found = sorted(path for path in built.glob("*.dist-info") if path.is_dir() and not path.is_symlink()) if built.is_dir() else []
    if len(found) != 1:
        raise LockFailed(f"{_WHAT}: its build gave {len(found)} packages.")
    # A build's result is as untrusted as the repository: its size is counted, and links are not followed.
    try:
        _pack(built, site)
    except ValueError as error:
        raise LockFailed(f"{_WHAT}: {error}") from error
    about = site / found[0].name
    metadata = HeaderParser().parsestr(_text(about / "METADATA"))
    required = metadata.get_all("Requires-Dist", ())
    if len(required) > _MOST_REQUIRED:
        raise LockFailed(f"{_WHAT}: the package depends on {len(required):,} others, and at most {_MOST_REQUIRED:,} may be named.")
    requires = tuple(line for line in required if _is_own(line))
    scripts = {**_files(site / "bin"), **_scripts(about)}
    return Installed(site, str(metadata["Name"] or ""), str(metadata["Version"] or ""), requires, scripts)


def _pack(built: Path, site: Path) -> None:
    """Raises ValueError, OSError."""
    try:
        pack_repository(built, site, _WITH_COMPILED)
    except ValueError:
        pack_repository(built, site)


def _is_own(line: str) -> bool:
    """Whether the requirement belongs to no extra."""
    try:
        marker = Requirement(line).marker
    except (InvalidRequirement, RecursionError):
        return True
    return marker is None or "extra" not in str(marker)


def _scripts(about: Path) -> Mapping[str, str]:
    read = configparser.RawConfigParser(delimiters=("=",), strict=False)
    read.optionxform = str  # pyright: ignore[reportAttributeAccessIssue] - names are as they are written
    try:
        read.read_string(_text(about / "entry_points.txt"))
    except configparser.Error:
        return {}
    found = read.items("console_scripts") if read.has_section("console_scripts") else ()
    # Extras in brackets may follow a function.
    return {name: target.partition("[")[0].strip() for name, target in found}


def _files(folder: Path) -> Mapping[str, str]:
    """Programs that are files, such as `scripts` of a setup.py."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: f"{folder.name}/{path.name}" for path in found if _PYTHON.match(_text(path))}


def _text(path: Path) -> str:
    return left_in(path, _MOST_BYTES)[:_MOST_BYTES].decode(errors="replace")
