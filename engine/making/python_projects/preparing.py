"""Finds a Python and versions with which a project can be installed here, and installs it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

from engine.disk.removal import remove
from engine.making.failures import LockFailed, NotWanted
from engine.making.python_projects.installs import Installed, ProjectInstalls
from engine.making.python_projects.interpreter_choice import interpreters_for, is_older
from engine.making.python_projects.levels import Level, levels_of
from engine.making.python_projects.too_new import is_too_new, older_package
from engine.making.python_sources.projects import pyproject_of
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.outages import is_outage
from engine.making.uv.runs import UvRuns
from engine.runtimes.environments.dependencies import PYTHON_VERSION, Dependencies, Kind
from engine.runtimes.environments.environments import Environment, ScriptEnvironments
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.runtime import Progress
from toolagent.contracts.sources import ScriptLanguage

_MOST_PYTHONS = 3
_PATIENCE = 0.8
"""After this part of an installation's time, a failure is final, because the next attempt would take as long."""
_LOCK = "requirements.lock"
_TOLD = 400


@dataclass(frozen=True, slots=True)
class Order:
    """`project` is a folder of the repository, `besides` are further requirements, `work` is a work folder.

    The package goes to a folder beside `work`, one for each Python. `needs_package`: the project is useless without its own package;
    otherwise its modules are imported from the repository.
    """

    repository: Path
    project: str
    work: Path
    tool_name: str
    besides: tuple[str, ...] = ()
    needs_package: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """`files` declare its dependencies to the runtime; `notes` tell what failed, and the replacement."""

    files: Mapping[str, str]
    environment: Environment
    installed: Installed | None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Attempts:
    """The failures so far, in order."""

    failures: list[LockFailed | ScriptFailure] = field(default_factory=list[LockFailed | ScriptFailure])
    told: list[str] = field(default_factory=list[str])

    def add(self, what: str, failure: LockFailed | ScriptFailure) -> None:
        """Raises failures of our own services: the same attempt may succeed later."""
        if is_outage(failure):
            raise failure
        self.failures.append(failure)
        self.told.append(f"{what}: {failure.message[:_TOLD]}")


class PythonProjects:
    """Environments belong to the task until its tools are registered."""

    def __init__(self, runs: UvRuns, locks: ProjectLocks, environments: ScriptEnvironments) -> None:
        self._runs, self._locks, self._environments = runs, locks, environments
        self._installs = ProjectInstalls(runs)
        self._last: tuple[str, str] | None = None
        self._guessed: tuple[Order, str] | None = None
        self._held: tuple[str, ...] = ()
        self._not_after: datetime | None = None
        self._older_than: str | None = None
        self._failed: dict[tuple[Order, str, tuple[str, ...]], LockFailed | ScriptFailure] = {}
        """Failures by order, level and bounds: with one more bound, an older version may be installable. A lock leaves no choice."""
        self._refuted: dict[tuple[Order, str], LockFailed] = {}

    def begin(self) -> None:
        """Forgets what was prepared last."""
        self._last = self._guessed = None

    def older_for(self, told: str) -> str:
        """Excludes what was prepared last, which does not run and `told` this. Returns the replacement in words; empty if there is none."""
        if self._last is None:
            return ""
        if self._guessed is not None:
            self._refuted[self._guessed] = LockFailed("It was installed, and did not run.")
            return f"something else than the {self._guessed[1].partition(', ')[2]}"
        minor, lock = self._last
        if (line := older_package(told, lock)) and line not in self._held:
            self._held = (*self._held, line)
            return line
        if is_too_new(told):
            self._older_than = minor
            return f"a Python older than {minor}"
        return ""

    def add(self, line: str, not_after: datetime | None) -> bool:
        """Adds a requirement to what was prepared last. False if nothing was, or it has it already."""
        if self._last is None or line in self._held:
            return False
        self._held, self._not_after = (*self._held, line), not_after or self._not_after
        return True

    async def prepare(self, order: Order, progress: Progress) -> Prepared:
        """Prepares the project with the likeliest Python and the strictest versions that can be installed.

        Raises NotWanted, LockFailed, ScriptFailure; ValueError and OSError for a repository that cannot be copied.
        """
        progress("reading what the project depends on")
        tree = await asyncio.to_thread(Tree.read, order.repository)
        folder, programs = PurePosixPath(order.project), self._runs.programs
        own = next(minor for minor, program in programs.pythons.items() if program == programs.python)
        fitting = await asyncio.to_thread(interpreters_for, tree, folder, tuple(programs.pythons), own)
        pythons = [one for one in fitting if self._older_than is None or is_older(one, self._older_than)][:_MOST_PYTHONS]
        if not pythons:
            raise NotWanted(f"No older Python than {self._older_than} is here that the project allows.")
        attempts, until = _Attempts(), time.monotonic() + _PATIENCE * self._runs.timeout_s
        async with contextlib.aclosing(self._choices(order, tree, pythons, attempts, progress)) as choices:
            async for python, level, installed in choices:
                if attempts.failures and time.monotonic() > until:
                    break
                if (found := await self._tried(order, python, level, installed, attempts, progress)) is not None:
                    self._last = python, found.files[_LOCK]
                    self._guessed = (order, _what(python, level)) if level.is_guess else None
                    return found
        raise _said(attempts)

    async def _choices(
        self, order: Order, tree: Tree, pythons: Sequence[str], attempts: _Attempts, progress: Progress
    ) -> AsyncGenerator[tuple[str, Level, Installed | None]]:
        """All strict levels with each Python, then loose ones with the likeliest Python."""
        folder = PurePosixPath(order.project)
        is_package = await asyncio.to_thread(_is_package, tree, folder)
        if order.needs_package and not is_package:
            raise NotWanted("The project is no package: it has neither a pyproject.toml that says how it is built, nor a setup.py.")
        packages: dict[str, Installed | None] = {}
        for python, is_loose in (*((one, False) for one in pythons), (pythons[0], True)):
            if python not in packages:
                packages[python] = await self._package(order, python, attempts, progress) if is_package else None
            installed = packages[python]
            if installed is None and order.needs_package:
                continue
            for level in await asyncio.to_thread(levels_of, tree, folder, installed.requires if installed else None):
                if level.is_loose is is_loose:
                    yield python, level, installed

    async def _package(self, order: Order, python: str, attempts: _Attempts, progress: Progress) -> Installed | None:
        """The package, or None if it cannot be built with this Python. Raises failures of our own services."""
        progress(f"building the project with Python {python}")
        site = order.work.with_name(f"site-{python}")
        try:
            program = self._runs.programs.python_of(python)
            return await self._installs.install(order.repository, order.project, order.work, site, program)
        except (LockFailed, ScriptFailure) as failure:
            if order.needs_package:
                attempts.add(f"Python {python}", failure)
            elif is_outage(failure):
                raise
            await asyncio.to_thread(remove, site)
            return None

    async def _tried(
        self, order: Order, python: str, level: Level, installed: Installed | None, attempts: _Attempts, progress: Progress
    ) -> Prepared | None:
        what, held = _what(python, level), () if level.is_lock else self._held
        if failed := self._refuted.get((order, what)) or self._failed.get((order, what, held)):
            attempts.add(what, failed)
            return None
        progress(f"installing what the project depends on ({what})")
        try:
            program = self._runs.programs.python_of(python)
            lock = await self._locks.lock(level.wanted, (*order.besides, *self._held), order.work, self._not_after, program)
            files = {_LOCK: lock}
            if program != self._runs.programs.python:
                files[PYTHON_VERSION] = f"{python}\n"
            contents = {name: text.encode() for name, text in files.items()}
            dependencies = Dependencies(ScriptLanguage.PYTHON, Kind.REQUIREMENTS_LOCK, contents)
            environment = await self._environments.ensure(dependencies, order.tool_name, progress)
        except (LockFailed, ScriptFailure) as failure:
            attempts.add(what, failure)
            self._failed[order, what, held] = failure
            return None
        notes = (*attempts.told, f"Installed instead with Python {python} and {level.name}.") if attempts.told else ()
        return Prepared(files, environment, installed, notes)


def _what(python: str, level: Level) -> str:
    return f"Python {python}, {level.name}"


def _is_package(tree: Tree, folder: PurePosixPath) -> bool:
    about = pyproject_of(tree, folder)
    says = about.table("build-system").values or about.table("project").values or about.table("tool").table("poetry").values
    return bool(says) or tree.has(folder / "setup.py") or tree.has(folder / "setup.cfg")


def _said(attempts: _Attempts) -> LockFailed | ScriptFailure | NotWanted:
    """The first failure, which says most because it is about the author's own versions."""
    if not attempts.failures:
        return NotWanted("The project does not say what it depends on in a file that can be read.")
    first = attempts.failures[0]
    if len(attempts.failures) == 1:
        return first
    return LockFailed(f"{first.message} Tried besides: {'; '.join(attempts.told[1:])}", first.told)
