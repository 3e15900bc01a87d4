"""Asks uv once for the data of this host's Python, and puts it into new caches of uv."""

import asyncio
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from engine.disk.leftovers import discard
from engine.making.boxes import boxed
from engine.runtimes.environments.execution import Executor, Order
from engine.runtimes.environments.programs import Programs
from engine.runtimes.process.box import Mount
from toolagent.contracts.sandbox import SandboxLimits

_LIMITS = SandboxLimits(processes=64, open_files=1024, wall_s=600)
_ASK_S = 60.0
_KNOWN = "interpreter-v*/*/*"
_MOST_BYTES = 64 * 1024
_FOR_ALL = 0o777
"""For the user that programs run as. The outer folder is private."""


class Interpreters:
    """Saves the time to ask a Python, which is longer than the time to make an environment. uv asks again for another Python."""

    def __init__(self, executor: Executor, programs: Programs) -> None:
        self._executor, self._programs = executor, programs
        self._turn = asyncio.Lock()
        self._known: Mapping[PurePosixPath, bytes] = {}

    async def put_into(self, cache: Path, work: Path) -> None:
        """Fills uv's future cache. No program may have written to it, because links in it would be followed.

        `work` is a new folder for the question, removed afterwards. If the question fails, uv asks for itself later.
        Raises ScriptFailure, OSError.
        """
        async with self._turn:
            if not self._known:
                try:
                    self._known = await self._asked(work)
                finally:
                    await asyncio.shield(asyncio.to_thread(discard, work))
        await asyncio.to_thread(_write, cache, self._known)

    async def _asked(self, work: Path) -> Mapping[PurePosixPath, bytes]:
        """Runs uv without any project."""
        cache = work / "cache"
        await asyncio.to_thread(_folder, cache)
        uv, python = self._programs.uv, self._programs.python
        argv = (str(uv.file), "python", "find", "--no-project", "--no-config", str(python.file))
        variables = {"HOME": str(work), "UV_CACHE_DIR": str(cache), "UV_PYTHON_DOWNLOADS": "never", "UV_OFFLINE": "1"}
        mounts = (*uv.mounts, *python.mounts, Mount(work, work, writable=True))
        box = boxed(self._executor, "interpreter", work, _LIMITS, mounts, variables)
        done = await self._executor.run(Order(argv, box, _ASK_S, work / "log"))
        return {} if done.code != 0 or done.cut else await asyncio.to_thread(_read, cache)


def _read(cache: Path) -> dict[PurePosixPath, bytes]:
    found = (path for path in cache.glob(_KNOWN) if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES)
    return {PurePosixPath(path.relative_to(cache)): path.read_bytes() for path in found}


def _write(cache: Path, known: Mapping[PurePosixPath, bytes]) -> None:
    _folder(cache)
    for name, content in known.items():
        path = cache / name
        if not path.exists():
            for folder in (path.parent.parent, path.parent):
                _folder(folder)
            path.write_bytes(content)
            path.chmod(0o644)


def _folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(_FOR_ALL)
