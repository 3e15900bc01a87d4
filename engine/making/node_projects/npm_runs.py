"""Runs npm in the sandbox on the files of a repository, with access to the package index only."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.making.boxes import boxed, index_of, run_with_index
from engine.making.failures import HostUnready, LockFailed, NotWanted
from engine.making.node_projects.manifests import MANIFEST, manifest_at
from engine.making.node_projects.pins import pinned
from engine.making.node_projects.plain_files import require_plain, write_json
from engine.making.uv.outages import is_outage
from engine.runtimes.environments.execution import Executor, Order
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.environments.programs import Program, Programs
from engine.runtimes.process.box import Mount
from toolagent.contracts.sandbox import SandboxLimits
from toolagent.contracts.sources import ScriptLanguage

_MIB = 1024 * 1024
_TOLD = 4_000
_LIMITS = SandboxLimits(
    memory_bytes=4096 * _MIB, cpus=2, processes=512, open_files=8192, file_bytes=1024 * _MIB, disk_bytes=4096 * _MIB,
    output_bytes=8 * _MIB, wall_s=86_400,
)  # fmt: skip
_UNRESOLVED, _ALL_THE_SAME = "ERESOLVE", "--legacy-peer-deps"
_LOCK, _DEVELOPED = "package-lock.json", "devDependencies"
_NO_SCRIPTS = "--ignore-scripts"
_ASK_S = 20.0
_PLACE = re.compile(r"npm error (?:code|path|command|errno|syscall|A complete log|Lifecycle script)\b|npm error\s*$")
"""Lines of npm that say where it failed, not why."""
_MARKS = re.compile(r"\x1b\[[0-9;]*m")
"""Terminal colours."""
_LOG = re.compile(r"^.*A complete log of this run can be found in:.*\n?", re.MULTILINE)
"""Names a path of this machine to a log that is gone."""

_GONE = re.compile(
    r"404 Not Found - GET https?://[^\s]*?/((?:@[^/\s]+/)?[^/\s]+)/-/|No matching version found for ((?:@[^/\s]+/)?[^@\s]+)@"
    r"|404\s+'((?:@[^/\s]+/)?[^@\s]+)@"
)
_ELSEWHERE = re.compile(r"npm error 403 .* - GET (https?://\S+)")
"""A package at another host than the index."""

_MOST_GONE = 5
_SETTINGS = ".npmrc"
RUNNERS = "runners"
"""The folder in `work` with what runs scripts besides npm."""

_NOWHERE = "/nonexistent/npmrc"
_QUIET = ("--no-audit", "--no-fund", "--no-progress", "--loglevel=error")


@dataclass(frozen=True, slots=True)
class Installed:
    """`workarounds` are notes. `unpinned` is why npm could not install the versions of another lock, if so."""

    workarounds: tuple[str, ...] = ()
    unpinned: str = ""


class NpmRuns:
    """Uses the same package index as environments."""

    def __init__(self, executor: Executor, programs: Programs, installer: Installer) -> None:
        self._executor, self._programs, self._installer = executor, programs, installer
        self._version = ""

    @property
    def timeout_s(self) -> float:
        """Seconds that one run may take."""
        return self._installer.timeout_s

    async def take(
        self, arguments: Sequence[str], work: Path, folder: Path, what: str, *, needs_index: bool = True, bun: Program | None = None
    ) -> None:
        """Runs `npm` with these arguments in `folder`, which is in `work`, the only writable folder. Scripts find what is in `RUNNERS`.

        Removes the project's npm settings, which could name another index or a program. Raises LockFailed, whose message begins with
        `what`; ScriptFailure (`UnavailableError`) if this host has no Node.js.
        """
        await asyncio.to_thread(_without_settings, work, folder)
        node = self._programs.require("Node.js", self._programs.node)
        npm = self._programs.require("npm", Program(self._programs.npm) if self._programs.npm else None)
        index = await index_of(self._installer, ScriptLanguage.NODEJS) if needs_index else Index()
        if index.passwords:
            raise HostUnready(f"{what}: the address of the package index holds a password, which a build would see.")
        more = bun.mounts if bun else ()
        mounts = tuple(dict.fromkeys((*node.mounts, *npm.mounts, *more, Mount(work, work, writable=True))))
        variables = {**index.variables, **_variables(work, node), **self._programs.headers}
        box = boxed(self._executor, "npm", folder, _LIMITS, mounts, variables)
        argv = (str(node.file), str(npm.file), *arguments, *_QUIET)
        log = work.with_name(f"{work.name}-log")
        done = await run_with_index(self._executor, self._installer, box, argv, index, self.timeout_s, log)
        if done.code != 0 or done.cut:
            told = _MARKS.sub("", (done.stderr or done.stdout).decode(errors="replace")).strip()
            why = "it took too long, or said too much" if done.cut else _why(told) or f"npm exited with code {done.code}"
            raise LockFailed(f"{what}: {why[:600]}", _LOG.sub("", told)[-_TOLD:]) from (TimeoutError() if done.cut == "time" else None)

    async def install(
        self, work: Path, folder: Path, what: str, *options: str, is_exact: bool = False, pins: Mapping[str, str] | None = None
    ) -> Installed:
        """Installs the manifest in `folder` without running scripts. Raises LockFailed, ScriptFailure.

        `is_exact`: by the project's lock, if it still fits. `pins`: with these versions, if they can be installed.
        """
        if is_exact and await asyncio.to_thread((folder / _LOCK).is_file):
            with suppress(LockFailed):
                await self.take(("ci", _NO_SCRIPTS, *options), work, folder, what)
                return Installed()
        unpinned = await self._install_pinned(work, folder, what, options, pins) if pins else ""
        if pins and not unpinned:
            return Installed()
        notes: list[str] = []
        while True:
            try:
                await self.take(("install", _NO_SCRIPTS, *options), work, folder, what)
            except LockFailed as failure:
                note, more = await self._workaround(failure, work, folder, len(notes), _ALL_THE_SAME in options)
                notes.append(note)
                options = (*options, *more)
            else:
                return Installed(tuple(notes), unpinned)

    async def _install_pinned(self, work: Path, folder: Path, what: str, options: Sequence[str], pins: Mapping[str, str]) -> str:
        """Why npm could not install these versions, empty if it did. Raises LockFailed for an outage."""
        before = await asyncio.to_thread(_pin, work, folder, pins)
        try:
            await self.take(("install", _NO_SCRIPTS, *options), work, folder, what)
        except LockFailed as failure:
            if is_outage(failure):
                raise
            await asyncio.to_thread(write_json, folder / MANIFEST, before)
            await asyncio.to_thread((folder / _LOCK).unlink, missing_ok=True)
            return failure.message.removeprefix(f"{what}: ")
        return ""

    async def _workaround(
        self, failure: LockFailed, work: Path, folder: Path, already: int, is_lenient: bool
    ) -> tuple[str, tuple[str, ...]]:
        """A note on the workaround for a failure, and options for it. Raises the failure if there is none."""
        told = f"{failure.message}{failure.told}"
        if _UNRESOLVED in told and not is_lenient:
            told = f"What it depends on does not fit together ({failure.message[:300]}), and was installed all the same: {_ALL_THE_SAME}"
            return told, (_ALL_THE_SAME,)
        gone = next((name for found in _GONE.finditer(told) for name in found.groups() if name), "")
        if not gone and (elsewhere := _ELSEWHERE.search(failure.told)):
            gone = await asyncio.to_thread(_needing, work, folder, elsewhere[1])
        if already < _MOST_GONE and await asyncio.to_thread(_without, work, folder, gone):
            return f"{gone}, which it is developed with, is not to be had, and was left out.", ()
        raise failure

    async def node_version(self, work: Path) -> str:
        """The output of `node --version`; empty if it fails. Raises ScriptFailure (`UnavailableError`)."""
        if not self._version:
            node = self._programs.require("Node.js", self._programs.node)
            box = boxed(self._executor, "node", Path("/"), _LIMITS, node.mounts, {})
            done = await self._executor.run(Order((str(node.file), "--version"), box, _ASK_S, work.with_name(f"{work.name}-log")))
            self._version = done.stdout.decode(errors="replace").strip()[:40] if done.code == 0 else ""
        return self._version


def _why(told: str) -> str:
    """The first line of an error, and the next if it ends with a colon."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    at = next((at for at, line in enumerate(lines) if "error" in line.lower() and not _PLACE.match(line)), 0)
    first, *more = lines[at : at + 2] or [""]
    return " ".join([first, *more]) if first.endswith(":") else first


def _without_settings(work: Path, folder: Path) -> None:
    """Removes npm's settings from each folder that npm may take for the project. Raises LockFailed."""
    require_plain(work, folder)
    for place in (folder, *folder.parents):
        try:
            (place / _SETTINGS).unlink(missing_ok=True)
        except OSError as error:
            raise LockFailed(f"The project holds a {_SETTINGS} that cannot be removed: {error.strerror}.") from error
        if place == work:
            return


def _needing(work: Path, folder: Path, address: str) -> str:
    """The package that depends on this address, by the project's lock; empty if the lock does not say. Raises LockFailed."""
    require_plain(work, folder)
    try:
        packages = manifest_at(folder / _LOCK).table("packages")
    except NotWanted:
        return ""
    found = (path for path in packages.values if address in packages.table(path).table("dependencies").values.values())
    return next(found, "").rpartition("node_modules/")[2]


def _pin(work: Path, folder: Path, pins: Mapping[str, str]) -> Mapping[str, object]:
    """Writes these versions into the manifest; returns what it was. Raises LockFailed."""
    require_plain(work, folder)
    try:
        manifest = manifest_at(folder / MANIFEST)
        write_json(folder / MANIFEST, pinned(manifest, pins))
    except (NotWanted, OSError) as error:
        raise LockFailed(f"The project's {MANIFEST} cannot be written: {error}") from error
    return manifest.values


def _without(work: Path, folder: Path, name: str) -> bool:
    """Removes a development dependency from the manifest, and the lock. False if the project has no such dependency. Raises LockFailed."""
    require_plain(work, folder)
    try:
        manifest = manifest_at(folder / MANIFEST)
        developed = manifest.table(_DEVELOPED).values
        if name not in developed:
            return False
        (folder / _LOCK).unlink(missing_ok=True)
        left = {one: spec for one, spec in developed.items() if one != name}
        write_json(folder / MANIFEST, {**manifest.values, _DEVELOPED: left})
    except (NotWanted, OSError) as error:
        raise LockFailed(f"The project's {MANIFEST} cannot be written: {error}") from error
    return True


def _variables(work: Path, node: Program) -> dict[str, str]:
    return {
        "PATH": f"{work / RUNNERS}:{node.file.parent}:/usr/bin:/bin",
        "HOME": str(work),
        "TMPDIR": str(work),
        "CI": "true",
        "npm_config_cache": str(work / "npm-cache"),
        "npm_config_userconfig": _NOWHERE,
        "npm_config_update_notifier": "false",
        "DO_NOT_TRACK": "1",
        "PUPPETEER_SKIP_DOWNLOAD": "1",
        "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    }
