"""Distinguishes the crash of Temporal's SDK at exit from other crashes."""

import signal
import subprocess

__all__ = ["crashed_at_exit"]


def crashed_at_exit(ran: subprocess.CompletedProcess[str]) -> bool:
    """Whether the SDK's threads crashed a finished interpreter (sdk-python issue 300, open; 1 of 30 runs here, Python 3.11).

    They release the GIL while the interpreter is finalizing, and there is no way to wait for them. The stack then has no Python frame; a
    crash with one is another crash, and counts. Callers must have seen that all output was printed.
    """
    _, fatal, stack = ran.stderr.rpartition("Fatal Python error")
    return ran.returncode in {-signal.SIGSEGV, -signal.SIGABRT} and not (fatal and 'File "' in stack)
