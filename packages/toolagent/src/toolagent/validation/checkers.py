"""Runs expensive checks in processes with limits of time and memory.

At most two run at once; others wait.
"""

import asyncio
import atexit
import marshal
import queue
import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import IO

from pydantic import JsonValue, TypeAdapter

from toolagent.validation.checking import Found

__all__ = ["CHECK_MEMORY_BYTES", "CHECK_S", "REASONS_S", "Checked", "CheckersBusyError", "check", "check_soon", "end_checks"]

CHECK_S = 4.0
REASONS_S = 1.0
"""Time limit for the reasons why a value is not valid, once that is known."""

CHECK_MEMORY_BYTES = 1 << 30
_PATIENCE_S = 4.0
"""How long a check waits for its turn. Together with the check, that is less than the time limit of a step of a call."""

_AT_ONCE = 2
_WAITING = 32
_NOT_STARTED = 1
_PROGRAM = Path(__file__).with_name("checking_child.py")


class CheckersBusyError(Exception):
    """All processes are busy or closed. A retry may succeed."""

    def __init__(self, message: str = f"Checking other values against their schemas takes longer than {_PATIENCE_S:g} s. Try again later."):
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Checked:
    """`valid` is None if the check did not finish, `found` is None if the reasons are incomplete. `error` is the library's error."""

    valid: bool | None = None
    first: tuple[Found, ...] = ()
    found: tuple[Found, ...] | None = None
    error: str = ""


_LINE = TypeAdapter(Checked)


def check(schema: str, value: JsonValue, most: int) -> Checked:
    """Checks a value against the text of a schema, for at most `most` reasons. Blocks. Raises CheckersBusyError, OSError, RuntimeError."""
    try:
        # JSON would take ten times as long, and would block all other threads.
        request = marshal.dumps((schema, value, most))
    except ValueError:
        return Checked(found=(("$", "The value is nested too deeply to be checked.", "limit"),))
    with _all_checkers().turn() as checker:
        return checker.check(request)


async def check_soon(schema: str, value: JsonValue, most: int) -> Checked:
    """`check` for an event loop."""
    try:
        async with asyncio.timeout(_PATIENCE_S + CHECK_S):
            return await asyncio.get_running_loop().run_in_executor(_all_checkers().threads, check, schema, value, most)
    except TimeoutError:
        raise CheckersBusyError from None


def end_checks() -> None:
    """Ends all checks for good. Running and waiting checks raise CheckersBusyError at once."""
    _all_checkers().end()


class _Checker:
    """One process, started on demand, and again after its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._is_ended = False

    def end(self) -> None:
        """Kills the process, from any thread. The thread that has its turn closes it."""
        with self._starting:
            self._is_ended = True
            if self._process is not None:
                self._process.kill()

    def check(self, request: bytes) -> Checked:
        process = self._running()
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("The program was started without pipes.")
        said: Checked | None = None
        with suppress(BrokenPipeError), _killed_after(process, CHECK_S):
            process.stdin.write(len(request).to_bytes(8, "big") + request)
            process.stdin.flush()
            said = _said(process.stdout)
        known = said or Checked()
        if known.valid is False:
            with _killed_after(process, REASONS_S):
                said = first = _said(process.stdout)
                if first and first.found is None:
                    known, said = replace(known, first=first.first), _said(process.stdout)
        if said is None:
            if not self._is_ended:
                self._require_started(process)
            self.close()
        if self._is_ended:
            raise _stopping()
        return said or known

    def _require_started(self, process: subprocess.Popen[bytes]) -> None:
        if process.wait() == _NOT_STARTED:
            self.close()
            raise RuntimeError(f"The program that checks values cannot be run: {sys.executable} {_PROGRAM}.")

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:
                pass

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            with self._starting:
                if self._is_ended:
                    raise _stopping()
                self._process = subprocess.Popen(
                    [sys.executable, "-I", str(_PROGRAM), str(int(CHECK_S)), str(CHECK_MEMORY_BYTES)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                    start_new_session=True,
                )
        return self._process


def _said(answers: IO[bytes]) -> Checked | None:
    """One line of the program; None if the program has ended."""
    line = answers.readline()
    return _LINE.validate_json(line) if line.endswith(b"\n") else None


@contextmanager
def _killed_after(process: subprocess.Popen[bytes], seconds: float) -> Generator[None]:
    expiry = threading.Timer(seconds, process.kill)
    expiry.start()
    try:
        yield
    finally:
        expiry.cancel()
        # If the timer is just firing, wait, so that the process has ended before its next request.
        expiry.join()


class _Checkers:
    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(_WAITING, thread_name_prefix="check")
        """Separate threads, so that other work in threads does not wait for checks."""
        self._all = tuple(_Checker() for _ in range(_AT_ONCE))
        self._free = queue.LifoQueue[_Checker | None]()
        """Contains None after the end, so that later checks are refused."""
        for checker in self._all:
            self._free.put(checker)

    @contextmanager
    def turn(self) -> Generator[_Checker]:
        try:
            checker = self._free.get(timeout=_PATIENCE_S)
        except queue.Empty:
            raise CheckersBusyError from None
        if checker is None:
            self._free.put(None)
            raise _stopping()
        try:
            yield checker
        finally:
            self._free.put(checker)

    def end(self) -> None:
        for checker in self._all:
            checker.end()
        self._free.put(None)

    def close(self) -> None:
        """For the exit of the process."""
        self.end()
        for checker in self._all:
            checker.close()


@lru_cache(maxsize=1)
def _all_checkers() -> _Checkers:
    checkers = _Checkers()
    atexit.register(checkers.close)
    return checkers


def _stopping() -> CheckersBusyError:
    return CheckersBusyError("The service stops, and checks nothing any more. Try again later.")
