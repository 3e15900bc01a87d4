"""The environments of scripts: dependencies installed once in the sandbox, named by the hash of the files that declare them."""

import asyncio
import contextlib
import copy
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from engine.disk.removal import remove
from engine.runtimes.auditing.advisories import Judge, Judged, unjudged
from engine.runtimes.environments.c_headers import header_remedy
from engine.runtimes.environments.cache import (
    CacheLimits,
    Gone,
    abandon,
    account_of,
    drop,
    held,
    is_marked,
    keep,
    mark,
    reserve,
    tidy,
    touch,
    unmark,
)
from engine.runtimes.environments.dependencies import Dependencies, Kind
from engine.runtimes.environments.execution import Execution, Executor, Order
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.environments.npm_packages import npm_packages
from engine.runtimes.environments.programs import Program, Programs
from engine.runtimes.environments.steps import EnvironmentFolder, Step, steps_of
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.folders import seal
from engine.runtimes.process.box import Box, Mount, no_network
from engine.runtimes.process.cancelled_once import cancelled_once
from engine.runtimes.process.file_lock import locked
from engine.runtimes.running.shared_start import SharedStart
from engine.runtimes.runtime import Progress
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from engine.runtimes.sandbox.sandbox import run_name
from toolagent.contracts.manifest import SecurityContext
from toolagent.contracts.sandbox import SandboxAccount, SandboxLimits
from toolagent.contracts.sources import ScriptLanguage

_MIB = 1024 * 1024
_LIMITS = SandboxLimits(
    memory_bytes=2048 * _MIB, cpus=2, processes=256, open_files=4096, file_bytes=2048 * _MIB, disk_bytes=4096 * _MIB,
    output_bytes=4 * _MIB, wall_s=86_400,
)  # fmt: skip
_TOLD_BYTES = 4000
_NPM_PLACE = re.compile(r"npm error (?:code|path|command|errno|syscall|A complete log)\b")
"""Lines of npm that say where it failed but not why."""

_WITHOUT_BUILDS = "Nothing was built, as the address of the package index holds a password, which a build would see."
_BUN = b'{"dependencies": {"bun": "1.4.5"}}'
_BUN_FILE = "bun/bin/bun.exe"


@dataclass(frozen=True, slots=True)
class Environment:
    """`modules` is the folder of npm packages, if there are any; `python` the interpreter of Python packages."""

    language: ScriptLanguage
    folder: EnvironmentFolder
    modules: Path | None
    python: Program | None = None

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The mounts of a program that runs in it, except npm packages, whose place depends on the program."""
        root = self.folder.root
        return (*(self.python.mounts if self.python else ()), Mount(root, root))

    @property
    def is_made(self) -> bool:
        """Whether it has a folder of its own, rather than just this machine's interpreter."""
        return self.language is ScriptLanguage.PYTHON or self.modules is not None


@dataclass(frozen=True, slots=True)
class Installed:
    """An installation, for the audit."""

    tool_id: str
    at: datetime
    commands: tuple[Sequence[str], ...]
    packages: tuple[str, ...]
    duration_s: float
    failure: ScriptFailure | None = None
    refusals: tuple[str, ...] = ()
    done: bool = True
    """False if it failed or was cancelled."""
    account: SandboxAccount | None = None
    """The sandbox account of its last step; the hosts are those of the package index."""
    advisories: tuple[str, ...] = ()
    """Packages known to be vulnerable, if the policy asks for a check."""


@dataclass(slots=True)
class _Job:
    """A running installation. `refusals` and `account` are observed at its steps, even if these fail."""

    tool_id: str
    dependencies: Dependencies
    environment: Environment
    refusals: list[str] = field(default_factory=list[str])
    account: SandboxAccount | None = None

    def failed(self, why: str, **facts: JsonValue) -> ScriptFailure:
        file = self.dependencies.named
        message = f"What {self.tool_id!r} depends on ({file}) could not be installed: {why}"
        return ScriptFailure(ScriptErrorKind.DEPENDENCY, message, {"file": file, **facts})


class ScriptEnvironments:
    """Environments under `folder`, each made once and then read-only; an interrupted one is made again.

    `note` is called after each installation; `judge` may refuse the installed packages before anything runs with them.
    """

    def __init__(
        self,
        folder: Path,
        executor: Executor,
        programs: Programs,
        installer: Installer,
        note: Callable[[Installed], None] = lambda _: None,
        judge: Judge = unjudged,
        limits: CacheLimits | None = None,
    ) -> None:
        self._judge, self._limits = judge, limits or CacheLimits()
        self._folder, self._executor, self._installer = folder, executor, installer
        self.programs, self._note = programs, note
        self._making: dict[str, SharedStart[str, None]] = {}
        self._own_bun: Environment | None = None
        self.task = ""
        """The task that new environments are made for; empty: for good."""

    def for_task(self, task_id: str) -> "ScriptEnvironments":
        """A view in which new environments belong to the task, until something else uses them or `keep` is called."""
        own = copy.copy(self)
        own.task = task_id
        return own

    async def keep(self, task_id: str) -> None:
        """Keep the task's environments for good."""
        await asyncio.to_thread(keep, self._folder, task_id)

    async def drop(self, task_id: str) -> None:
        """Remove the task's environments that nothing else used."""
        await asyncio.to_thread(drop, self._folder, task_id)

    def find(self, dependencies: Dependencies) -> Environment:
        """The environment, made or not. Only looks at this machine's programs. Raises ScriptFailure (`DependencyError`)."""
        folder = EnvironmentFolder(self._folder / dependencies.digest(self._stamp(dependencies)))
        has_modules = dependencies.kind is not Kind.NOTHING and dependencies.language is not ScriptLanguage.PYTHON
        python = self.programs.python_of(dependencies.python) if dependencies.language is ScriptLanguage.PYTHON else None
        return Environment(dependencies.language, folder, folder.modules if has_modules else None, python)

    def is_whole(self, environment: Environment) -> bool:
        """Whether the environment is complete and unchanged; also records the use. One without packages needs no installation."""
        if not environment.is_made:
            return True
        # The interpreter is a link, which breaks if its Python is removed.
        is_there = environment.modules is not None or environment.folder.python.exists()
        is_whole = is_there and is_marked(environment.folder.root, _names(environment))
        if is_whole:
            touch(environment.folder.root, self.task)
        return is_whole

    @contextlib.contextmanager
    def using(self, environment: Environment) -> Generator[None]:
        """Prevents the environment's removal during the block. Raises ScriptFailure (`UnavailableError`) if it is removed already."""
        with contextlib.ExitStack() as stack:
            try:
                for one in (environment, self._own_bun if environment.language is ScriptLanguage.BUN else None):
                    if one is not None and one.is_made:
                        stack.enter_context(held(one.folder.root))
            except Gone as error:
                message = "The environment was removed before anything was run in it. Call again: it is made anew."
                raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, message) from error
            yield

    async def tidy(self) -> tuple[str, ...]:
        """Remove unneeded and interrupted environments. Returns their names."""
        return await asyncio.to_thread(tidy, self._folder, self._limits)

    async def ensure(self, dependencies: Dependencies, tool_id: str, progress: Progress) -> Environment:
        """Make the environment if missing; concurrent callers share it. Raises ScriptFailure (`DependencyError`, `UnavailableError`)."""
        environment = self.find(dependencies)
        if await asyncio.to_thread(self.is_whole, environment):
            return environment
        key = environment.folder.root.name
        begun = self._making.get(key)
        if begun is None or not begun.is_open:
            if begun is not None:
                await begun.over()
            begun = self._making[key] = SharedStart(key, lambda tell: self._make(_Job(tool_id, dependencies, environment), tell))
        progress(f"waiting for the environment of {tool_id}")
        try:
            await begun.wait(progress)
        except RuntimeFailure as failure:
            raise ScriptFailure.of_start(failure) from failure
        finally:
            if begun.is_over and self._making.get(key) is begun:
                del self._making[key]
        # Another process may have made it.
        await asyncio.to_thread(touch, environment.folder.root, self.task)
        return environment

    async def provide(self, language: ScriptLanguage, tool_id: str, progress: Progress) -> Programs:
        """The programs, with the language's interpreter; a missing Bun is installed from npm. Raises ScriptFailure."""
        if language is ScriptLanguage.NODEJS:
            self.programs.require("Node.js", self.programs.node)
        if language is ScriptLanguage.BUN and (self.programs.bun is None or self._own_bun is not None):
            await self._provide_bun(tool_id, progress)
        return self.programs

    async def _provide_bun(self, tool_id: str, progress: Progress) -> None:
        if self._own_bun is None or not await asyncio.to_thread(self.is_whole, self._own_bun):
            if self.programs.npm is None:
                self.programs.require("Bun", None)
            progress("installing Bun")
            self._own_bun = await self.ensure(Dependencies(ScriptLanguage.NODEJS, Kind.NPM, {"package.json": _BUN}), tool_id, progress)
            program = Program(self._own_bun.folder.modules / _BUN_FILE)
            self.programs = replace(self.programs, bun=self.programs.require("Bun", program))

    async def _make(self, job: _Job, progress: Progress) -> None:
        await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
        async with locked(job.environment.folder.root.with_suffix(".lock")):
            if await asyncio.to_thread(self.is_whole, job.environment):
                return
            progress(f"installing what {job.tool_id} depends on ({job.dependencies.named})")
            try:
                async with asyncio.timeout(self._installer.timeout_s):
                    # This time-out and that of the waiters may coincide, and both cancel.
                    await cancelled_once(self._install(job))
            except TimeoutError as error:
                raise job.failed(f"It took longer than {self._installer.timeout_s:g} s.") from error
        await self.tidy()

    async def _install(self, job: _Job) -> None:
        environment, folder, began = job.environment, job.environment.folder, datetime.now(UTC)
        steps = steps_of(job.dependencies, folder, self.programs)
        failure: ScriptFailure | None = None
        judged = Judged()
        try:
            await asyncio.to_thread(_empty, folder, job.dependencies.files)
            for step in steps:
                await self._take(step, job)
            if environment.modules is None:
                judged = await self._judge(job.tool_id, await asyncio.to_thread(_packages, environment))
                if judged.refusal is not None:
                    raise job.failed(judged.refusal)
            await asyncio.to_thread(_finish, environment, self.task)
        except ScriptFailure as error:
            failure = error
            raise
        except OSError as error:
            failure = job.failed(f"{error.strerror}: {Path(str(error.filename)).name}")
            raise failure from error
        finally:
            done = await asyncio.to_thread(is_marked, folder.root)
            packages = await asyncio.to_thread(_packages, environment) if done else ()
            if not done:
                await asyncio.to_thread(abandon, folder.root)
            took = (datetime.now(UTC) - began).total_seconds()
            commands = tuple(step.argv for step in steps)
            refusals = tuple(job.refusals)
            self._note(Installed(job.tool_id, began, commands, packages, took, failure, refusals, done, job.account, judged.notes))

    async def _take(self, step: Step, job: _Job) -> None:
        folder = job.environment.folder
        account = self._executor.sandbox.grant(SecurityContext(limits=_LIMITS)).account
        mounts = [mount for program in step.programs for mount in program.mounts]
        own = [Mount(path, path, writable=True) for path in (folder.root, folder.project)]
        try:
            index = await self._installer.indexes(job.dependencies.language) if step.needs_index else Index()
        except IndexesUnknown as error:
            raise job.failed(str(error)) from error
        job.account = account.model_copy(
            update={name: getattr(account, name).model_copy(update={"hosts": index.hosts}) for name in ("requested", "enforced")}
        )
        variables = {**index.variables, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **folder.environment, **self.programs.headers}
        box = Box(run_name(job.tool_id), folder.project, account.enforced.limits, (*mounts, *own), variables)
        network = self._installer.network if step.needs_index else no_network
        argv = (*step.argv, *(step.without_builds if index.passwords else ()))
        async with network(box, argv, index.hosts) as opened:
            order = Order(opened.argv, opened.box, self._installer.timeout_s, account_of(folder.root))
            try:
                done = await self._executor.run(order)
            finally:
                job.refusals += opened.refusals()
        if done.code != 0 or done.cut or done.ending.disk_full:
            done = done.without(index.passwords)
            why = f"{_why(done)} {_WITHOUT_BUILDS}" if index.passwords else _why(done)
            failure = job.failed(why, command=Path(step.argv[0]).name, exit_code=done.code)
            failure.told = (done.stderr or done.stdout)[-_TOLD_BYTES:].decode(errors="replace").strip()
            raise failure

    def _stamp(self, dependencies: Dependencies) -> str:
        """Identifies the interpreter: each needs packages of its own."""
        if dependencies.language is ScriptLanguage.PYTHON:
            return self.programs.python_of(dependencies.python).stamp
        program = self.programs.node if dependencies.language is ScriptLanguage.NODEJS else self.programs.bun
        return program.stamp if program else ""


def _why(done: Execution) -> str:
    if done.cut is not None:
        return "The installation took too long." if done.cut == "time" else f"The installation wrote too much on {done.cut}."
    if done.ending.beyond:
        return f"The installation {done.ending.beyond}."
    said = done.stderr.decode(errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # uv puts the reason last, as `cause: …`; npm puts it first, as `npm error …`.
    told = [line for line in reversed(lines) if line.startswith("cause:")]
    told += [line for line in lines if "error" in line and not _NPM_PLACE.match(line)] + lines
    return f"{told[0][:_TOLD_BYTES]}{header_remedy(said)}" if told else f"The installer ended with exit code {done.code}."


def _empty(folder: EnvironmentFolder, files: Mapping[str, bytes]) -> None:
    """Prepare empty folders with the files; leftovers of an interrupted installation are removed."""
    unmark(folder.root)
    remove(folder.root)
    for path in (folder.root, folder.project, folder.scratch):
        path.mkdir(mode=0o755)
    for name, content in files.items():
        (folder.project / name).write_bytes(content)
        (folder.project / name).chmod(0o644)


def _finish(environment: Environment, task: str) -> None:
    folder = environment.folder
    for path in folder.passing:
        remove(path)
    if environment.modules is not None and not environment.modules.is_dir():
        environment.modules.mkdir()
    seal(folder.root)
    reserve(folder.root, task)
    mark(folder.root, _names(environment))


def _names(environment: Environment) -> list[str]:
    """The top-level names of the packages: a cheap way to notice that one was removed."""
    packages = environment.modules or environment.folder.packages
    return sorted(path.name for path in packages.iterdir()) if packages.is_dir() else []


def _packages(environment: Environment) -> tuple[str, ...]:
    """The installed packages as `name==version`."""
    if environment.modules is None:
        found = [name.removesuffix(".dist-info") for name in _names(environment) if name.endswith(".dist-info")]
        return tuple(name.replace("-", "==", 1) for name in found)
    names = [name for name in _names(environment) if not name.startswith(".")]
    return tuple(package for name in names for package in npm_packages(environment.modules, name))
