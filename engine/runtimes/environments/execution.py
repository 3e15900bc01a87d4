"""Runs one program in the sandbox, with input on stdin, limited output and limited time."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.process.box import Box, Ending, LevelUnavailable
from engine.runtimes.process.launching import launched
from engine.runtimes.process.output import Capture
from engine.runtimes.process.processes import Launcher, Process, exit_text
from engine.runtimes.sandbox.sandbox import Sandbox

Cause = Literal["time", "stdout", "stderr"]
"""The limit that made us end the program."""

_STDERR_BYTES = 1024 * 1024
_STDOUT_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Order:
    """A program to run. `wall_s` counts from launch; `told` is called with stderr as it arrives; the run's log goes to `logs`."""

    argv: Sequence[str]
    box: Box
    wall_s: float
    logs: Path
    stdin: bytes = b""
    told: Callable[[bytes], None] | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of a run. `code` is the exit code, above 128 for a signal; `cut` is set if we ended the program."""

    code: int
    stdout: bytes
    stderr: bytes
    ending: Ending
    duration_s: float
    cut: Cause | None = None

    def without(self, passwords: Sequence[str]) -> "Execution":
        """The same, with these passwords removed from the output."""
        stdout, stderr = self.stdout, self.stderr
        for password in passwords:
            stdout, stderr = (text.replace(password.encode(), b"***") for text in (stdout, stderr))
        return replace(self, stdout=stdout, stderr=stderr)


class Executor:
    """Runs programs on the main thread's event loop. `sandbox` is a text if there is none: the reason why nothing can run."""

    def __init__(self, launcher: Launcher, sandbox: Sandbox | str) -> None:
        self._launcher, self._sandbox = launcher, sandbox

    @property
    def sandbox(self) -> Sandbox:
        """Raises ScriptFailure (`UnavailableError`)."""
        if isinstance(self._sandbox, str):
            raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, self._sandbox, {"program": "sandbox"})
        return self._sandbox

    async def run(self, order: Order) -> Execution:
        """Run a program. On return, failure or cancellation, the run has ended and left nothing. Raises ScriptFailure."""
        limit = order.box.limits.output_bytes or _STDOUT_BYTES
        streams = Capture(limit), Capture(min(limit, _STDERR_BYTES) if order.told is None else limit, order.told)
        began = time.monotonic()
        try:
            process = await launched(self._launch(order, streams), Process.kill)
            try:
                cut = await _over(process, streams, order.wall_s)
            finally:
                code = await process.kill()
        finally:
            for stream in streams:
                await stream.finish(0)
        stdout, stderr = (stream.kept for stream in streams)
        if not process.ending.was_set_up:
            raise _unavailable(stderr.decode(errors="replace").strip() or f"it {exit_text(code)}")
        return Execution(code, stdout, stderr, process.ending, time.monotonic() - began, cut)

    async def _launch(self, order: Order, streams: tuple[Capture, Capture]) -> Process:
        try:
            prepared = await self.sandbox.level.prepare(order.argv, order.box)
            return await self._launcher.launch_boxed(prepared, order.argv, logs=order.logs, stdin=order.stdin, streams=streams)
        except (LevelUnavailable, OSError) as error:
            raise _unavailable(str(error)) from error


async def _over(process: Process, streams: tuple[Capture, Capture], wall_s: float) -> Cause | None:
    """Wait for the first limit; None if the program ended by itself."""
    stdout, stderr = streams
    waits = [asyncio.create_task(one) for one in (process.wait(), stdout.overflowed.wait(), stderr.overflowed.wait())]
    try:
        await asyncio.wait(waits, timeout=wall_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if stdout.overflowed.is_set():
        return "stdout"
    if stderr.overflowed.is_set():
        return "stderr"
    return None if process.has_ended else "time"


def _unavailable(why: str) -> ScriptFailure:
    return ScriptFailure(ScriptErrorKind.UNAVAILABLE, f"The sandbox could not be set up: {why}", {"program": "sandbox"})
