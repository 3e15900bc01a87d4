"""Children in their own process group, which end with this process and leave a log of their run."""

import asyncio
import contextlib
import fcntl
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.runtimes.process.box import UNCOUNTED, Ending, Prepared
from engine.runtimes.process.child import Child
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.output import Output, Stream
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.sweep import end_run

RUN_MARK = "TOOL_AGENT_RUN"
_MAX_LOG_BYTES = 1024 * 1024
_DRAIN_S = 2.0


def exit_text(code: int) -> str:
    """An exit code in words: `exited with code 1`, `ended by SIGKILL (exit code -9)`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"ended by {name} (exit code {code})"


class Process:
    """One launched child and the group it leads. The log `last_run.log` is written when it ends, by itself or stopped.

    `ending` is set by its sandbox once it has ended.
    """

    def __init__(
        self,
        child: Child,
        argv: Sequence[str],
        logs: Path,
        streams: tuple[Stream, Stream],
        run: str,
        prepared: Prepared | None = None,
    ) -> None:
        self.pid = child.pid
        self._child, self._argv, self._logs, self._run, self._prepared = child, argv, logs, run, prepared
        self.stdout, self.stderr = streams
        self.ending = Ending()
        self._reaper: asyncio.Task[int] | None = None

    def guard(self, guardian: Guardian) -> None:
        """From now on the rest of the group is ended when its leader ends."""
        guardian.watch(self.pid)
        self._reaper = asyncio.create_task(self._reap(guardian), name=f"reap {self.pid}")

    @property
    def has_ended(self) -> bool:
        return self._child.returncode is not None

    async def wait(self) -> int:
        """Wait until the whole group has ended and the log is written; returns the exit code, negative for a signal."""
        if self._reaper is None:
            raise RuntimeError("The process is not guarded yet.")
        # A cancelled waiter must not stop the reaping.
        return await asyncio.shield(self._reaper)

    async def exited(self) -> None:
        """Wait until the child itself has ended; the rest of its group and the log may take a moment longer."""
        await self._child.wait()

    async def stop(self, grace_s: float) -> int:
        """SIGTERM to the group, then SIGKILL after `grace_s` seconds. Stopping an ended process is no error."""
        if not self.has_ended:
            if self._prepared is None:
                _signal_group(self.pid, signal.SIGTERM)
            else:
                self._prepared.terminate()
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
        # This also finds processes that left the group (daemons) by the run's mark. A sandbox that ended by itself has ended all its
        # processes; searching all processes of the machine would take longer than many scripts.
        if self._prepared is None or code < 0:
            await asyncio.to_thread(end_run, self.pid, RUN_MARK, self._run)
        guardian.release(self.pid)
        if self._prepared is not None:
            with contextlib.suppress(OSError):  # the sweep at the next start removes the rest
                ending = await self._prepared.end()
                # A sandbox ended by a signal had no time to report that it was set up.
                self.ending = ending if code >= 0 else replace(ending, was_set_up=True)
        await asyncio.gather(self.stdout.finish(_DRAIN_S), self.stderr.finish(_DRAIN_S))
        self._write_account(code)
        return code

    def _write_account(self, code: int) -> None:
        parts = [
            f"Command: {shlex.join(self._argv)}",
            f"Exit Code: {code}",
            "--- STDOUT ---",
            self.stdout.tail().rstrip("\n"),
            "--- STDERR ---",
            self.stderr.tail().rstrip("\n"),
            "",
        ]
        account = self._logs / "last_run.log"
        with contextlib.suppress(OSError):  # a full disk, or the state directory is gone
            account.unlink(missing_ok=True)  # file systems wait for the disk when a truncated file is closed
            account.write_text("\n".join(parts), encoding="utf-8")


def came_to(process: Process) -> str:
    """The limits that the process reached, or that it never ran, in parentheses; empty if neither."""
    ending = process.ending
    said = {
        "its sandbox could not be set up": not ending.was_set_up,
        "out of memory": ending.out_of_memory,
        f"it made {UNCOUNTED}": ending.disk_hidden,
        "its disk was full": ending.disk_full and not ending.disk_hidden,
        "it could start no more processes": ending.processes_refused,
    }
    told = [text for text, is_so in said.items() if is_so]
    return f" ({', '.join(told)})" if told else ""


class Launcher:
    """Starts children with `environment` and no other variables of ours. Use it on the main thread's event loop.

    `setpriv` (util-linux) makes the kernel end the child with the thread that launched it, even before the guardian knows the child;
    without it only the guardian does.
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
        stdio: int | None = None,
    ) -> Process:
        """Start `argv` in `folder`, with output to `stdout.log` and `stderr.log` in `logs`. Raises OSError.

        `stdio` is a connected socket for its stdin and stdout instead; it may be closed afterwards.
        """
        ends = None if stdio is None else (stdio, stdio)
        run = _Plan(self._ending_with_us(argv), argv, folder, {**self._environment, **environment}, stdio=ends)
        return await self._start(run, logs)

    async def launch_boxed(
        self,
        prepared: Prepared,
        argv: Sequence[str],
        *,
        logs: Path,
        stdin: bytes | None = None,
        stdio: tuple[int, int] | None = None,
        streams: tuple[Stream, Stream] | None = None,
    ) -> Process:
        """Start a run that a sandbox level prepared for `argv`. However it ends, its remains are removed. Raises OSError.

        `stdin` is the payload's input; stdout and stderr go to `streams`, or to files in `logs`. `stdio` are descriptors for its stdin
        and stdout instead, and may be closed afterwards; the caller then adds to the stdout stream itself.
        """
        command = prepared.argv if prepared.ends_with_us else self._ending_with_us(prepared.argv)
        plan = _Plan(command, argv, Path("/"), prepared.environment, prepared, stdin, stdio)
        try:
            process = await self._start(plan, logs, streams)
        except (OSError, asyncio.CancelledError):
            await prepared.end()
            raise
        try:
            await prepared.begin(process.pid)
        except (OSError, asyncio.CancelledError):
            await process.kill()
            raise
        return process

    async def _start(self, plan: "_Plan", logs: Path, streams: tuple[Stream, Stream] | None = None) -> Process:
        await asyncio.to_thread(logs.mkdir, parents=True, exist_ok=True)
        self._count += 1
        run = f"{self._owner.mark}/{self._count}"
        streams = streams or (Output(logs / "stdout.log", _MAX_LOG_BYTES), Output(logs / "stderr.log", _MAX_LOG_BYTES))
        stdin: int | None = None
        try:
            stdin = plan.open_stdin()
            child = Child(
                plan.command,
                plan.folder,
                {**plan.environment, **self._owner.environment, RUN_MARK: run},
                (*plan.ends(stdin, streams[0].write_end), streams[1].write_end),
                plan.prepared.pass_fds if plan.prepared else (),
            )
        except OSError:
            for stream in streams:
                await stream.finish(0)
            raise
        finally:
            if stdin is not None:
                os.close(stdin)
        process = Process(child, plan.argv, logs, streams, run, plan.prepared)
        process.guard(self._guardian)
        for stream in streams[1:] if plan.stdio else streams:
            stream.close_write_end()
        return process

    def _ending_with_us(self, argv: Sequence[str]) -> Sequence[str]:
        return [self._setpriv, "--pdeathsig", "KILL", "--", *argv] if self._setpriv else argv


@dataclass(frozen=True, slots=True)
class _Plan:
    """`command` is executed; `argv` is what the log shows."""

    command: Sequence[str]
    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    prepared: Prepared | None = None
    stdin: bytes | None = None
    stdio: tuple[int, int] | None = None

    def ends(self, stdin: int | None, stdout: int) -> tuple[int, int]:
        """The child's stdin and stdout."""
        if self.stdio is not None:
            return self.stdio
        return subprocess.DEVNULL if stdin is None else stdin, stdout

    def open_stdin(self) -> int | None:
        """A descriptor of the input: a file in memory, as a pipe would need a writer. Raises OSError."""
        if self.stdin is None:
            return None
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(self.stdin)
        os.lseek(fd, 0, os.SEEK_SET)
        # A child that could write to it would use our memory, not its own.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
        return fd


def _signal_group(pgid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, number)
