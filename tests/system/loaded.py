"""Services begin as copies of a process that has loaded the program: loading takes seconds of processor time at each start, a copy none.

`python -m tests.system.loaded` loads it at the first request for a copy. One such process serves all processes of a pytest run.
"""

import atexit
import gc
import importlib
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

from engine.network.tls import machine_tls, usual_tls
from tests.copying import Copy, Order, ask, listening, serve
from tests.programs import Program, end_with_us

__all__ = ["ADDRESS", "Process", "loaded", "start_workers"]

ADDRESS = "TEST_LOADED"
"""The variable that says where the one serves that all processes of pytest ask."""

_ROOT = Path(__file__).parents[2]
_STARTED_WITH = ("LD_PRELOAD", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that only a program sees that is started with them."""

_WHEN_ASKED = f"""
import os, select, sys
select.select([0], [], [])
os.execv(sys.executable, [sys.executable, "-m", {__name__!r}])
"""

_LOADED = (
    "workers.commands.up",
    "workers.commands.doors",
    "httpcore",
    "anyio._backends._asyncio",
    "engine.roles.providers.anthropic_client",
    "engine.registry.matching.vectors",
    "rjieba",
)
"""Not what is run: that is not to have been imported before. The last three are what a service imports when it needs them."""


Process = subprocess.Popen[bytes] | Copy


def start_workers(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    out: IO[bytes],
    err: IO[bytes],
    *,
    program: str = "workers",
    is_copied: bool = True,
) -> Process:
    """Start `python -m PROGRAM ARGUMENTS` in a session of its own, which ends with ours; as a copy if its variables allow that."""
    if not is_copied or any(environment.get(name) != _variables().get(name) for name in _STARTED_WITH):
        command = [sys.executable, "-m", program, *arguments]
        return Program(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    order: Order = {"folder": str(folder), "program": program, "arguments": [*arguments], "environment": environment}
    with Path(os.devnull).open("rb") as nothing:
        copy = ask(_address(), order, [nothing.fileno(), out.fileno(), err.fileno()])
    end_with_us(copy.pid)
    return copy


@contextmanager
def loaded() -> Generator[str]:
    """The address of a process that makes copies. It loads the program at the first request."""
    waiting = [sys.executable, "-I", "-S", "-c", _WHEN_ASKED]
    with listening() as (address, listener), Program(waiting, cwd=_ROOT, env=_variables(), stdin=listener) as program:
        listener.close()
        try:
            yield address
        finally:
            program.terminate()


@cache
def _variables() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(_ROOT)}  # noqa: TID251 - as our children inherit it


@cache
def _address() -> str:
    """The address of the shared process, or of one of our own."""
    if (address := _variables().get(ADDRESS)) is not None:
        return address
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(loaded())


def _run() -> NoReturn:
    for module in _LOADED:
        importlib.import_module(module)
    machine_tls()
    usual_tls()
    gc.collect()
    gc.freeze()
    order = serve(socket.socket(fileno=0))
    sys.argv = [order["program"], *order["arguments"]]
    runpy.run_module(order["program"], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    _run()
