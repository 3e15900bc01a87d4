"""Processes of a test that begin as copies of one that has loaded the program, because importing takes a second or two."""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tests.system.loaded import Process, start_workers
from workers.settings.environment import environment

__all__ = ["start_copy", "start_text"]

_ROOT = Path(__file__).parents[1]
_BOUND_S = 60.0


def start_copy(program: str, *arguments: str, variables: Mapping[str, str] | None = None) -> tuple[Process, IO[bytes]]:
    """Start `python -m PROGRAM ARGUMENTS` at our root; returns it with its output. It ends with this run.

    Reading raises TimeoutError after a minute without output. `variables` replace ours.
    """
    said, prints = socket.socketpair()
    said.settimeout(_BOUND_S)
    with said, os.fdopen(prints.detach(), "wb") as out, os.fdopen(os.dup(2), "wb") as err:
        own = {**(environment() if variables is None else variables), "PYTHONPATH": str(_ROOT)}
        return start_workers(arguments, _ROOT, own, out, err, program=program), said.makefile("rb")


def start_text(text: str, *arguments: str) -> tuple[Process, IO[bytes]]:
    """Start `python -c TEXT ARGUMENTS`."""
    return start_copy("tests.copies", text, *arguments)


if __name__ == "__main__":
    exec(compile(sys.argv.pop(1), "text of a test", "exec"), {"__name__": "__main__"})  # noqa: S102 - a test has written it
