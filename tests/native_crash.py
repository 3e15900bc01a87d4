"""Telling the crash of Temporal's SDK at the exit of a program from any other one."""

import signal
import subprocess

__all__ = ["crashed_at_exit"]


def crashed_at_exit(ran: subprocess.CompletedProcess[str]) -> bool:
    """Whether the SDK's threads crashed an interpreter that was done (sdk-python issue 300, open; 1 of 30 runs here, Python 3.11).

    They let go of the GIL while the interpreter is already finalizing, and there is no way to wait for them. Nothing of Python is on the
    stack then; a crash with a frame of anybody's code is another one, and is not forgiven. Whoever asks has seen that all was printed.
    """
    _, fatal, stack = ran.stderr.rpartition("Fatal Python error")
    return ran.returncode in {-signal.SIGSEGV, -signal.SIGABRT} and not (fatal and 'File "' in stack)
