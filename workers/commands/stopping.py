"""How a process is asked to stop."""

import asyncio
import os
import signal
import sys

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_KILLED = 128
"""A shell's exit code of a program that a signal ended is this and the signal's number."""


def stop_on_signals(asked_to_stop: asyncio.Event) -> None:
    """The first signal asks; a second one ends this process at once, as `kill -9` would, and the guardian ends what is left."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        asked_to_stop.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            # Not as an exception: it would be raised in whatever runs, and threads would be waited for.
            signal.signal(number, _end_at_once)

    for number in _SIGNALS:
        loop.add_signal_handler(number, ask)


def _end_at_once(number: int, _frame: object) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_KILLED + number)
