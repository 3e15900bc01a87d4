"""Locks the package of a command, so that any host makes the same environment."""

import asyncio
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from engine.disk.leftovers import discard
from engine.making.failures import HostUnready, LockFailed
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.python_sources.wanted import Wanted
from engine.making.repositories.packaging import open_to_all
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.outages import is_outage
from engine.mcp_servers.packages import PackageCommand
from engine.registry.archives import NotPackedError, ProjectArchives
from engine.runtimes.environments.dependencies import PYTHON_VERSION, Dependencies, Kind
from engine.runtimes.environments.environments import Environment, ScriptEnvironments
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from toolagent.contracts.sources import McpSource, ScriptLanguage
from toolagent.core.failures import McpServerNotStartedError, McpServerRefusedError

_MANIFEST, _LOCK = "package.json", "package-lock.json"
_NPM_LOG = "A complete log of this run can be found in"
"""A line of npm with a local path, which callers need not see."""

_MOST_PYTHONS = 3
_MAX_LOCK = 16 * 1024 * 1024
_MANIFEST_BYTES = 1024 * 1024
_TOLD = 600


@dataclass(frozen=True, slots=True)
class PackageParts:
    """Locks and installs packages on this host. `folder` is for temporary files."""

    folder: Path
    locks: ProjectLocks
    npm: NpmRuns
    environments: ScriptEnvironments
    archives: ProjectArchives


class PackageServers:
    """Locks and installs each package once, so that later starts run what was looked at."""

    def __init__(self, parts: PackageParts) -> None:
        self._parts = parts

    async def prepare(self, command: PackageCommand, name: str) -> McpSource:
        """A source without a tool. Raises McpServerRefusedError, McpServerNotStartedError, StoreUnavailableError."""
        work = self._parts.folder / f"{name}-{secrets.token_hex(4)}"
        project = work / "project"
        try:
            await asyncio.to_thread(project.mkdir, 0o755, parents=True)
            is_python = command.language is ScriptLanguage.PYTHON
            program = await (self._of_python(command, name, work, project) if is_python else self._of_npm(command, name, work, project))
            await asyncio.to_thread(open_to_all, project)
            content = await self._parts.archives.content_of(project, name)
        except (LockFailed, ScriptFailure) as failure:
            raise _failed(failure) from failure
        except NotPackedError as error:
            raise McpServerRefusedError("args", f"What it depends on cannot be kept: {error}") from error
        except OSError as error:
            raise McpServerNotStartedError(f"What it depends on cannot be kept here: {error.strerror}.") from error
        finally:
            await asyncio.shield(asyncio.to_thread(discard, work))
        return McpSource(tool_name="-", content=content, command=(program, *command.arguments))

    async def _of_python(self, command: PackageCommand, name: str, work: Path, project: Path) -> str:
        """Lock and install with the first Python here that works. Returns the program."""
        wanted = Wanted(tuple(whole for _, whole in command.wanted))
        failure: LockFailed | ScriptFailure | None = None
        for minor in self._pythons(command.python):
            program = self._parts.environments.programs.python_of(minor)
            try:
                lock = await self._parts.locks.lock(wanted, (), work / "locking", python=program)
                files = {"requirements.lock": lock, **({PYTHON_VERSION: f"{minor}\n"} if minor else {})}
                contents = {file: text.encode() for file, text in files.items()}
                dependencies = Dependencies(ScriptLanguage.PYTHON, Kind.REQUIREMENTS_LOCK, contents)
                environment = await self._parts.environments.ensure(dependencies, name, _quiet)
            except (LockFailed, ScriptFailure) as error:
                if is_outage(error):
                    raise
                failure = failure or error
                continue
            await asyncio.to_thread(_write, project, files)
            return await asyncio.to_thread(_python_program, environment, command.program or "")
        raise failure or LockFailed("There is no Python here that it could run on.")

    def _pythons(self, asked: str) -> Sequence[str]:
        """Minor versions to try: ours, written as an empty text, then the newest."""
        programs = self._parts.environments.programs
        if asked:
            return ["" if programs.python_of(asked) == programs.python else asked]
        others = sorted((one for one, program in programs.pythons.items() if program != programs.python), key=_number, reverse=True)
        return ["", *others][:_MOST_PYTHONS]

    async def _of_npm(self, command: PackageCommand, name: str, work: Path, project: Path) -> str:
        manifest = json.dumps({"name": "server", "version": "1.0.0", "private": True, "dependencies": dict(command.wanted)})
        npm, place = work / "npm", work / "npm" / "locking"
        await asyncio.to_thread(_laid_out, npm, place, manifest)
        await self._parts.npm.install(npm, place, "What the server depends on cannot be locked", "--package-lock-only")
        files = {_MANIFEST: manifest, _LOCK: await asyncio.to_thread(_text, place / _LOCK)}
        contents = {file: files[file].encode() for file in (_LOCK, _MANIFEST)}
        environment = await self._parts.environments.ensure(Dependencies(ScriptLanguage.NODEJS, Kind.NPM_LOCK, contents), name, _quiet)
        await asyncio.to_thread(_write, project, files)
        return command.program or await asyncio.to_thread(_npm_program, environment, command.wanted[0][0])


def _python_program(environment: Environment, name: str) -> str:
    """Raises McpServerRefusedError."""
    folder = environment.folder.python.parent
    there = sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.lower().startswith(("python", "activate")))
    if name in there:
        return name
    told = f"It has {', '.join(there[:10])}: write `uvx --from {name} PROGRAM`." if there else "It has none at all."
    raise McpServerRefusedError("args", f"The package {name} has no program of that name. {told}")


def _npm_program(environment: Environment, package: str) -> str:
    """The program that npx would choose: the only one, or the one named as the package. Raises McpServerRefusedError, OSError."""
    modules = environment.modules
    try:
        about: object = json.loads(((modules or Path()) / package / _MANIFEST).read_text()[:_MANIFEST_BYTES])
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, RecursionError) as error:
        raise McpServerRefusedError("args", f"The package {package} cannot be read: {type(error).__name__}.") from error
    said = cast("dict[str, object]", about).get("bin") if isinstance(about, dict) else None
    last = package.rpartition("/")[2]
    if isinstance(said, str):
        return last
    names = sorted(cast("dict[str, object]", said)) if isinstance(said, dict) else []
    if len(names) == 1 or last in names:
        return last if last in names else names[0]
    told = f"It has {', '.join(names[:10])}: write `npx --package {package} PROGRAM`." if names else "It has none at all."
    raise McpServerRefusedError("args", f"The package {package} does not say which of its programs is the server. {told}")


def _failed(failure: LockFailed | ScriptFailure) -> McpServerRefusedError | McpServerNotStartedError:
    """A refusal for faults of the package. Faults of our disk, time limit or settings mean that the server was not started."""
    lines = (line.strip().removeprefix("cause: ") for line in failure.told.splitlines())
    last = [line for line in lines if line and _NPM_LOG not in line][-1:]
    said = " ".join((failure.message, *(f"It said last: {line}" for line in last if line not in failure.message)))[: 2 * _TOLD]
    is_late = isinstance(failure, ScriptFailure) and failure.kind is ScriptErrorKind.TIMEOUT
    is_ours = is_late or isinstance(failure, HostUnready) or isinstance(failure.__cause__, OSError) or is_outage(failure)
    return McpServerNotStartedError(said) if is_ours else McpServerRefusedError("args", said)


def _quiet(_: str) -> None:
    """Ignores progress."""


def _laid_out(work: Path, place: Path, manifest: str) -> None:
    for folder in (work, place):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
    (place / _MANIFEST).write_text(manifest)
    (place / _MANIFEST).chmod(0o666)


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def _text(path: Path) -> str:
    """Raises LockFailed."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_LOCK:
        raise LockFailed(f"npm wrote no {path.name} that can be read.")
    return path.read_text(errors="replace")


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])
