"""Clones the newest commit of a repository in the sandbox, within limits of size and time, without running any of it."""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from pathlib import Path

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.boxes import boxed
from engine.making.repositories.addresses import CloneFailed, CloneFailure, RepositoryAddress, repository_address
from engine.making.repositories.clone_failures import failure_of, ssh_failure_of, too_large, too_slow
from engine.making.repositories.packaging import Room, require_fit
from engine.making.repositories.ssh import SshClient
from engine.making.repositories.trees import extent_of
from engine.runtimes.environments.execution import Execution, Executor, Order
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.environments.programs import Program
from engine.runtimes.folders import entries
from engine.runtimes.process.box import Box, Mount, Network, no_network
from toolagent.contracts.manifest import NetworkAccess, SecurityContext
from toolagent.contracts.sandbox import SandboxLimits

_MIB = 1024 * 1024
_LOOK_S, _LONGEST_PAUSE_S = 0.1, 1.0
_REST = 4
"""The pause after a look at the clone is so many times longer than the look."""
_MOST_TOLD = 100
_WORK, _CONFIG_FILE, _SSH_LOGS = "work", "git.config", "ssh"
_REST_S = 10.0
"""Time to read the commit of the finished clone."""


@dataclass(frozen=True, slots=True)
class CloneLimits:
    """`max_bytes` and `max_files` are for the whole folder during the clone, git's own files included. Time is in seconds."""

    max_bytes: int = 512 * _MIB
    max_files: int = 20_000
    wall_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Clone:
    """`folder` holds the files of the commit, without `.git`. `dropped` are the first hundred links that led out of it."""

    folder: Path
    commit: str
    dropped: tuple[str, ...] = ()


def repository_in(into: Path) -> Path:
    """The folder with the files of a clone."""
    return into / _WORK / "repository"


class Cloner:
    """Accepts addresses with these `schemes`. `network` and `ssh` reach hosts that the sandbox policy allows."""

    def __init__(
        self,
        executor: Executor,
        network: Network = no_network,
        *,
        schemes: Collection[str] = ("https", "ssh"),
        limits: CloneLimits | None = None,
        path: str | None = None,
        ssh: SshClient | None = None,
    ) -> None:
        self._executor, self._network, self._schemes = executor, network, frozenset(schemes)
        self._limits, self._path, self._ssh = limits or CloneLimits(), path, ssh

    @property
    def room(self) -> Room:
        """The room for a copy of a clone."""
        return Room(self._limits.max_bytes, self._limits.max_files)

    async def clone(self, url: str, into: Path, ref: str = "") -> Clone:
        """Clones to a folder below `into`, which is emptied first, and removed after a failure. Raises CloneFailed.

        `ref` is a branch, a tag or a commit; empty: the repository's default branch.
        """
        address = repository_address(url, self._schemes)
        git = self._git()
        try:
            async with _own(into), asyncio.timeout(self._limits.wall_s):
                return await self._cloned(address, git, into, ref)
        except TimeoutError as error:
            raise too_slow(self._limits.wall_s) from error
        except (OSError, ScriptFailure) as error:
            raise CloneFailed(CloneFailure.UNAVAILABLE, f"The repository cannot be cloned now: {error}") from error

    async def _cloned(self, address: RepositoryAddress, git: Program, into: Path, ref: str) -> Clone:
        hosts = self._allowed(address)
        await asyncio.to_thread(_prepare, into, address.scheme)
        target, box = repository_in(into), self._box(into, git, address)
        for argv in _commands(str(git.file), address.url, target, ref):
            if address.scheme == "ssh":
                await self._over_ssh(address, box, argv, into)
            else:
                await self._over_network(address, box, argv, hosts, into)
        commit = await self._commit(git, self._box(into, git, address), target, into)
        dropped = await asyncio.to_thread(_tidied, target)
        try:
            # A copy of the clone has a file for each link.
            await asyncio.to_thread(require_fit, target, self.room)
        except ValueError as error:
            raise CloneFailed(CloneFailure.TOO_LARGE, f"The repository cannot be taken as it is. {error}") from error
        return Clone(target, commit, dropped)

    async def _over_network(self, address: RepositoryAddress, box: Box, argv: list[str], hosts: tuple[str, ...], into: Path) -> None:
        """Runs git with a network, or without one for a local folder. Raises CloneFailed, ScriptFailure."""
        async with self._network(box, argv, hosts) as opened:
            done = await self._watched(Order(opened.argv, opened.box, self._limits.wall_s, into / "log"), into)
            refusals = opened.refusals()
        if done.code != 0 or done.cut:
            raise failure_of(done, address, refusals)

    async def _over_ssh(self, address: RepositoryAddress, box: Box, argv: list[str], into: Path) -> None:
        """Runs git without a network of its own. Raises CloneFailed, ScriptFailure, OSError."""
        if self._ssh is None:
            raise CloneFailed(CloneFailure.UNAVAILABLE, "Nothing is set up here for ssh. Give an https address of the repository.")
        private_hosts = self._executor.sandbox.policy.private_hosts
        async with self._ssh.open(address, box, private_hosts, into / _SSH_LOGS) as way:
            done = await self._watched(Order(argv, way.box, self._limits.wall_s, into / "log"), into)
            if done.code != 0 or done.cut:
                raise ssh_failure_of(done, address, await way.last_words())

    def _git(self) -> Program:
        found = shutil.which("git", path=self._path)
        if found is None:
            raise CloneFailed(CloneFailure.UNAVAILABLE, "git is not on this host. Install it (Debian: apt-get install git).")
        file = Path(found).resolve()
        prefix = file.parent.parent
        # Its commands lie beside it; a system's git is visible anyhow.
        return Program(file, prefix if any((prefix / name / "git-core").is_dir() for name in ("libexec", "lib")) else None)

    def _allowed(self, address: RepositoryAddress) -> tuple[str, ...]:
        """The hosts that git may reach. Raises CloneFailed if the sandbox policy does not allow the address."""
        if not address.host:
            return ()
        asking = SecurityContext(network_access=NetworkAccess(allow_hosts=(address.pattern,)))
        hosts = self._executor.sandbox.grant(asking).enforced.hosts
        if not hosts:
            raise CloneFailed(
                CloneFailure.NOT_ALLOWED,
                f"The sandbox policy of this host does not allow {address.pattern}. Name it among the hosts of the policy.",
            )
        return hosts

    def _box(self, into: Path, git: Program, address: RepositoryAddress) -> Box:
        limits = SandboxLimits(
            memory_bytes=1024 * _MIB, cpus=2, processes=64, open_files=1024, file_bytes=self._limits.max_bytes,
            disk_bytes=2 * self._limits.max_bytes, output_bytes=_MIB, wall_s=self._limits.wall_s + _REST_S,
        )  # fmt: skip
        work, config = into / _WORK, into / _CONFIG_FILE
        mounts = [*git.mounts, Mount(work, work, writable=True), Mount(config, config)]
        if not address.host:
            repository = Path(address.path)
            if not repository.is_dir():
                raise CloneFailed(CloneFailure.NOT_FOUND, f"There is no folder {address.path} on this host.")
            mounts.append(Mount(repository, repository))
        return boxed(self._executor, "clone", work, limits, mounts, _environment(into))

    async def _watched(self, order: Order, into: Path) -> Execution:
        """Runs git, and ends it as soon as the clone is too large. Raises CloneFailed, ScriptFailure."""
        limits = self._limits
        running = asyncio.create_task(self._executor.run(order))
        try:
            pause = _LOOK_S
            while not running.done():
                await asyncio.wait([running], timeout=pause)
                began = time.monotonic()
                # Also after git has ended, which may be before the first look.
                extent = await asyncio.to_thread(extent_of, into, limits.max_bytes, limits.max_files)
                # Looks at many files slow git down.
                pause = min(max(_LOOK_S, _REST * (time.monotonic() - began)), _LONGEST_PAUSE_S)
                if extent.size > limits.max_bytes or extent.count > limits.max_files:
                    raise too_large(extent, limits.max_bytes, limits.max_files)
            return await running
        finally:
            running.cancel()
            # Wait even if cancelled: the folder cannot be removed while git writes to it.
            await asyncio.wait([running])

    async def _commit(self, git: Program, box: Box, target: Path, into: Path) -> str:
        argv = (str(git.file), "-C", str(target), "rev-parse", "--verify", "--quiet", "HEAD")
        done = await self._executor.run(Order(argv, box, _REST_S, into / "log"))
        commit = done.stdout.decode(errors="replace").strip()
        if done.code != 0 or not commit:
            raise CloneFailed(CloneFailure.NOT_FOUND, "The repository is empty: it has no commit. Push something to its main branch.")
        return commit


def _commands(git: str, url: str, target: Path, ref: str) -> list[list[str]]:
    """git's commands. A ref may be a commit, which `clone` does not accept, so it is fetched into an empty repository."""
    if not ref:
        how = ["--quiet", "--depth", "1", "--single-branch", "--no-tags", "--no-local", "--template="]
        return [[git, "clone", *how, "--", url, str(target)]]
    here = [git, "-C", str(target)]
    return [
        [git, "init", "--quiet", "--template=", str(target)],
        [*here, "fetch", "--quiet", "--depth", "1", "--no-tags", "--", url, ref],
        [*here, "checkout", "--quiet", "--detach", "FETCH_HEAD"],
    ]


@contextlib.asynccontextmanager
async def _own(into: Path) -> AsyncGenerator[None]:
    """Empties the folder, and removes it if the block fails."""
    await asyncio.to_thread(remove, into)
    await asyncio.to_thread(into.mkdir, parents=True)
    try:
        yield
    except BaseException:
        await asyncio.shield(asyncio.to_thread(discard, into))
        raise


def _prepare(into: Path, scheme: str) -> None:
    (into / _WORK).mkdir()
    (into / _CONFIG_FILE).write_text(_CONFIG.format(scheme=scheme))
    (into / _CONFIG_FILE).chmod(0o644)


_CONFIG = """\
[protocol]
    allow = never
[protocol "{scheme}"]
    allow = always
[safe]
    directory = *
[core]
    hooksPath = /dev/null
    fsmonitor = false
[credential]
    helper =
[submodule]
    recurse = false
[fetch]
    recurseSubmodules = false
[gc]
    auto = 0
[maintenance]
    auto = false
"""
"""git's configuration, in a file because `-c` does not reach programs that git starts. It names no filter (LFS), so none runs."""


def _environment(into: Path) -> dict[str, str]:
    return {
        "LC_ALL": "C",
        "HOME": str(into / _WORK),
        "TMPDIR": str(into / _WORK),
        "GIT_CONFIG_GLOBAL": str(into / _CONFIG_FILE),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }


def _tidied(folder: Path) -> tuple[str, ...]:
    """Removes git's own files and links that lead out; returns these links. Blocks."""
    remove(folder / ".git")
    root = folder.resolve()
    links = [Path(entry.path) for entry in entries(folder) if entry.is_symlink()]
    dropped = [link for link in links if not _leads_inside(link, root)]
    for link in dropped:
        link.unlink()
    # Not every name is valid UTF-8.
    told = sorted(os.fsencode(link.relative_to(folder).as_posix()).decode("utf-8", "replace") for link in dropped)
    return tuple(told[:_MOST_TOLD])


def _leads_inside(link: Path, root: Path) -> bool:
    try:
        return link.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a RuntimeError: a loop of links
        return False
