"""A file lock among all processes of this machine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import FileLock, Timeout

_LOOK_S = 0.05


@asynccontextmanager
async def locked(path: Path) -> AsyncGenerator[None, None]:
    """Hold a file lock against other tasks and processes, without blocking a thread."""
    lock = FileLock(path, thread_local=False)
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            await asyncio.sleep(_LOOK_S)
    try:
        yield
    finally:
        lock.release()
