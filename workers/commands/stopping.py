"""Signals that stop a process."""

import asyncio
import os
import signal
import sys

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_KILLED = 128
"""A shell's exit code for a program ended by a signal is this plus the signal's number."""


def stop_on_signals(asked_to_stop: asyncio.Event) -> None:
    """The first signal asks to stop. A second one ends this process at once, as `kill -9` would; the guardian then ends its children."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        asked_to_stop.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            # An exception could be raised anywhere, and Python would wait for threads.
            signal.signal(number, _end_at_once)

    for number in _SIGNALS:
        loop.add_signal_handler(number, ask)


def _end_at_once(number: int, _frame: object) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_KILLED + number)
