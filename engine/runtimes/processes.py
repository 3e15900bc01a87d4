"""Children in their own process group, that end with this process and leave an account of their run."""

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.runtimes.guardian import Guardian
from engine.runtimes.output import Output
from engine.runtimes.ownership import Owner
from engine.runtimes.sweep import end_run

__all__ = ["RUN_MARK", "Launcher", "Process", "exit_text"]

RUN_MARK = "TOOL_AGENT_RUN"
_MAX_LOG_BYTES = 1024 * 1024
_DRAIN_S = 2.0
_EMPTY_S = 5.0


def exit_text(code: int) -> str:
    """How an exit code reads: `exited with code 1`, `ended by SIGKILL (exit code -9)`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"ended by {name} (exit code {code})"


class Process:
    """One launched child and the group it leads. Its account `last_run.log` is written when it ends, by itself or stopped."""

    def __init__(
        self, child: asyncio.subprocess.Process, argv: Sequence[str], logs: Path, streams: tuple[Output, Output], run: str
    ) -> None:
        self.pid = child.pid
        self._child, self._argv, self._logs, self._run = child, argv, logs, run
        self.stdout, self.stderr = streams
        self._reaper: asyncio.Task[int] | None = None

    def guard(self, guardian: Guardian) -> None:
        """From now on what is left of the group is ended when its leader ends."""
        guardian.watch(self.pid)
        self._reaper = asyncio.create_task(self._reap(guardian), name=f"reap {self.pid}")

    @property
    def has_ended(self) -> bool:
        return self._child.returncode is not None

    async def wait(self) -> int:
        """Wait until it and its whole group have ended and its account is written; its exit code, negative for a signal."""
        if self._reaper is None:
            raise RuntimeError("The process is not guarded yet.")
        # Whoever stops waiting must not stop the reaping.
        return await asyncio.shield(self._reaper)

    async def exited(self) -> None:
        """Wait until the child itself has ended; what it started and its account may take a moment more."""
        await self._child.wait()

    async def stop(self, grace_s: float) -> int:
        """SIGTERM to the group, `grace_s` seconds, SIGKILL. Stopping what has ended is no error."""
        if not self.has_ended:
            _signal_group(self.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self.wait(), grace_s)
            _signal_group(self.pid, signal.SIGKILL)
        return await self.wait()

    async def kill(self) -> int:
        """SIGKILL to the group at once."""
        if not self.has_ended:
            _signal_group(self.pid, signal.SIGKILL)
        return await self.wait()

    async def _reap(self, guardian: Guardian) -> int:
        code = await self._child.wait()
        # Also what has left the group (a daemon in a session of its own): it still carries the mark of this run.
        await asyncio.to_thread(end_run, self.pid, RUN_MARK, self._run)
        guardian.release(self.pid)
        await asyncio.gather(self.stdout.finish(_DRAIN_S), self.stderr.finish(_DRAIN_S))
        self._write_account(code)
        return code

    def _write_account(self, code: int) -> None:
        # In the form of seed 001, appendix.
        parts = [
            f"Command: {shlex.join(self._argv)}",
            f"Exit Code: {code}",
            "--- STDOUT ---",
            self.stdout.tail().rstrip("\n"),
            "--- STDERR ---",
            self.stderr.tail().rstrip("\n"),
            "",
        ]
        with contextlib.suppress(OSError):  # a full disk, or the state directory is gone: nobody is left to tell
            (self._logs / "last_run.log").write_text("\n".join(parts), encoding="utf-8")


class Launcher:
    """Starts children with `environment` and nothing else of ours. Use it on the event loop of the main thread.

    `setpriv` (util-linux) makes the kernel end the child when the thread that launched it ends, which covers even the moment before
    the guardian knows of it; without it the guardian alone does.
    """

    def __init__(self, owner: Owner, guardian: Guardian, environment: Mapping[str, str], setpriv: str | None = None) -> None:
        self._owner, self._guardian, self._setpriv = owner, guardian, setpriv
        self._environment = dict(environment)
        self._count = 0

    async def launch(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        logs: Path,
        environment: Mapping[str, str],
        max_log_bytes: int = _MAX_LOG_BYTES,
    ) -> Process:
        """Start `argv` in `folder`, its output going to `stdout.log` and `stderr.log` in `logs`. Raises OSError."""
        await asyncio.to_thread(logs.mkdir, parents=True, exist_ok=True)
        self._count += 1
        run = f"{self._owner.mark}/{self._count}"
        streams = Output(logs / "stdout.log", max_log_bytes), Output(logs / "stderr.log", max_log_bytes)
        try:
            child = await asyncio.create_subprocess_exec(
                *self._ending_with_us(argv),
                cwd=folder,
                env={**self._environment, **environment, **self._owner.environment, RUN_MARK: run},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=streams[0].write_end,
                stderr=streams[1].write_end,
                start_new_session=True,
            )
        except (OSError, asyncio.CancelledError):
            for stream in streams:
                await stream.finish(0)
            raise
        process = Process(child, argv, logs, streams, run)
        process.guard(self._guardian)
        for stream in streams:
            stream.close_write_end()
        return process

    def _ending_with_us(self, argv: Sequence[str]) -> Sequence[str]:
        return [self._setpriv, "--pdeathsig", "KILL", "--", *argv] if self._setpriv else argv


def _signal_group(pgid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, number)
