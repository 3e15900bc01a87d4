"""A server for a drawn document: none of theirs can be called, so Prism answers from the document itself, on this machine."""

import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from bench.processes import Child, NotReadyError
from bench.repositories.wanted import Wanted

HOST = "127.0.0.1"
_PRISM = "@stoplight/prism-cli@5"
_START_S = 60.0


@contextmanager
def mocked(wanted: Wanted, clone: Path, folder: Path, port: int) -> Generator[dict[str, JsonValue]]:
    """What the task says of the server beside it: nothing without a document, or where Prism cannot read it."""
    if not wanted.document:
        yield {}
        return
    command = (str(_installed(folder)), "mock", "--host", HOST, "--port", str(port), str(clone / wanted.document))
    server = Child(command, folder, f"prism-{wanted.tool_name}")
    try:
        server.ready(lambda: "is listening" in server.output, _START_S)
    except NotReadyError:
        server.stop(signal.SIGTERM)
        yield {}
        return
    try:
        yield {"server_url": f"http://{HOST}:{port}", "hosts": [f"{HOST}:{port}"]}
    finally:
        server.stop(signal.SIGTERM)


def _installed(folder: Path) -> Path:
    """Started itself: what npx starts outlives it."""
    program = folder / "prism/node_modules/.bin/prism"
    if not program.exists():
        command = ("npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder / "prism"), _PRISM)
        subprocess.run(command, check=True, capture_output=True)
    return program


def free_port() -> int:
    with socket.create_server((HOST, 0)) as free:
        return free.getsockname()[1]
