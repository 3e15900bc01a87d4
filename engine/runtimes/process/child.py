"""A child process that inherits only the given descriptors, and whose end the event loop notices.

asyncio's own subprocesses do not suffice on uvloop: its children inherit all inheritable descriptors, and copies of their streams.
"""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_FOR_THE_GROUP = 0o002


class Child:
    """A child that leads its own session. `returncode` is None while it runs, and negative for a signal."""

    def __init__(
        self, argv: Sequence[str], folder: Path, environment: Mapping[str, str], streams: tuple[int, int, int], pass_fds: Sequence[int]
    ) -> None:
        """Start it. Raises OSError."""
        stdin, stdout, stderr = streams
        self._process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            start_new_session=True,
            # Tools with users of their own share a group, so that several can write to a granted folder.
            umask=_FOR_THE_GROUP if os.geteuid() == 0 else -1,
        )
        self.pid = self._process.pid
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        try:
            self._handle = os.pidfd_open(self.pid)
        except OSError:
            self._process.kill()
            self._process.wait()
            raise
        self._loop.add_reader(self._handle, self._reap)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        # A cancelled waiter must not affect the others.
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        code = self._process.poll()
        if code is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._ended.set_result(code)
