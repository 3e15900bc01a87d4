"""Locks a project's dependencies in the sandbox, with hashes and without addresses."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.boxes import left_in
from engine.making.failures import LockFailed
from engine.making.python_sources.wanted import Wanted
from engine.making.uv.runs import WORK, UvRuns
from engine.runtimes.environments.indexes import Index
from engine.runtimes.environments.programs import Program

_MIB = 1024 * 1024
_MAX_LOCK = 16 * _MIB
_QUIET = ("--no-header", "--no-annotate", "--quiet")
_HASH = re.compile(r"--hash=\w+:[0-9A-Fa-f]+")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_INCLUDED = re.compile(r"(?:-r|--requirement|-c|--constraint)(?:\s*=\s*|\s+)[^\s:]+")
_WHAT = "What the project depends on cannot be locked"


class ProjectLocks:
    """Locks by uv, with the same index as environments."""

    def __init__(self, runs: UvRuns) -> None:
        self._runs = runs

    async def lock(
        self, wanted: Wanted, besides: Sequence[str], into: Path, not_after: datetime | None = None, python: Program | None = None
    ) -> str:
        """The text of a `requirements.lock` with the wanted packages and `besides`. A project's own lock is kept.

        `not_after`: packages without a pin were published before; pins were judged when they were made. `python`: our own by default.
        `into` is a work folder, emptied first and removed afterwards. Raises LockFailed, ScriptFailure (`UnavailableError`).
        """
        require_index("\n".join(wanted.lines), with_files=True)
        if not (wanted.lines or wanted.uv_lock or besides):
            return ""  # nothing is wanted, so no index is asked
        await asyncio.to_thread(remove, into)
        try:
            await asyncio.to_thread(_prepare, into, wanted, besides)
            await self._runs.prepare(into)
            lock = await self._locked(wanted, besides, into, _age(wanted, not_after), python or self._runs.programs.python)
        finally:
            await asyncio.shield(asyncio.to_thread(discard, into))
        require_index(lock)
        return lock

    async def _locked(self, wanted: Wanted, besides: Sequence[str], into: Path, age: Sequence[str], python: Program) -> str:
        work = into / WORK
        if wanted.uv_lock:
            exporting = ("export", "--frozen", "--offline", "--no-dev", "--no-emit-project", *_QUIET, "--output-file", "wanted.txt")
            await self._runs.take((*exporting, "--python", str(python.file)), into, Index(), python, _WHAT)
        own = await asyncio.to_thread(_text, work / "wanted.txt")
        if wanted.is_lock or wanted.uv_lock:
            missing = [name for name in besides if not re.search(rf"^{re.escape(name)}==", own, re.MULTILINE)]
            if not missing:
                return own
            await asyncio.to_thread((work / "besides.txt").write_text, _lined(missing))
        index = await self._runs.index()
        inputs = ("wanted.txt", "besides.txt", "--constraints", "pins.txt")
        how = ("--generate-hashes", "--universal", "--no-strip-markers", "--python", str(python.file))
        without_builds = ("--no-build",) if index.passwords else ()
        arguments = ("pip", "compile", *inputs, *how, *age, *without_builds, *_QUIET, "--output-file", "lock.txt")
        await self._runs.take(arguments, into, index, python, _WHAT)
        return await asyncio.to_thread(_text, work / "lock.txt")


def require_index(lines: str, *, with_files: bool = False) -> None:
    """Raises LockFailed for a package from elsewhere than the index; `with_files`: lines may include files."""
    for line in lines.splitlines():
        # Line by line: a continuation is judged on its own line.
        said = _without_hashes(_COMMENT.sub("", line.strip().removesuffix("\\").rstrip()))
        if said and not _is_on_index(said) and not (with_files and _INCLUDED.fullmatch(said)):
            raise LockFailed(
                f"The project depends on {said[:200]!r}, which is no package of the index by name and versions alone, so it has no hash. "
                "Depend on a release of it."
            )


def pinned(lock: str) -> tuple[str, ...]:
    """The packages of a lock with hashes, as requirements."""
    lines = (line.partition(" --hash=")[0].rstrip(" \\") for line in lock.splitlines() if line[:1].isalnum())
    return tuple(line for line in lines if _is_on_index(line))


def _without_hashes(line: str) -> str:
    """Removes hashes word by word from the end, because one pattern would take quadratic time on a long line."""
    words = line.split()
    while words and _HASH.fullmatch(words[-1]):
        words.pop()
    return " ".join(words)


def _is_on_index(line: str) -> bool:
    try:
        return Requirement(line).url is None
    except (InvalidRequirement, RecursionError):
        return False


def _age(wanted: Wanted, not_after: datetime | None) -> tuple[str, ...]:
    if not_after is None:
        return ()
    names = (Requirement(pin).name for pin in wanted.pins)
    return "--exclude-newer", not_after.isoformat(), *(part for name in names for part in ("--exclude-newer-package", f"{name}=false"))


def _prepare(into: Path, wanted: Wanted, besides: Sequence[str]) -> None:
    files = {**wanted.files, **wanted.uv_lock, "pins.txt": _lined(wanted.pins), "besides.txt": _lined(besides)}
    if not wanted.uv_lock:
        files["wanted.txt"] = _lined(wanted.lines)
    for name, text in files.items():
        path = into / WORK / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)


def _text(path: Path) -> str:
    """The text of the file; empty if it is no regular file. Raises LockFailed."""
    content = left_in(path, _MAX_LOCK)
    if len(content) > _MAX_LOCK:
        raise LockFailed(f"The lock of what the project depends on is larger than {_MAX_LOCK // _MIB} MiB.")
    return content.decode(errors="replace")


def _lined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
