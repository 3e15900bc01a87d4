"""A server for a drawn document: none of theirs can be called, so Prism answers from the document itself, on this machine."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from bench.processes import Child, NotReadyError
from bench.repositories.wanted import Wanted

__all__ = ["HOST", "free_port", "mocked"]

HOST = "127.0.0.1"
_PRISM = ("npx", "--yes", "@stoplight/prism-cli@5", "mock", "--host", HOST)
_START_S = 180.0
"""npm fetches it the first time."""


@contextmanager
def mocked(wanted: Wanted, clone: Path, folder: Path, port: int) -> Iterator[dict[str, JsonValue]]:
    """What the task says of the server beside it: nothing without a document, or where Prism cannot read it."""
    if not wanted.document:
        yield {}
        return
    server = Child((*_PRISM, "--port", str(port), str(clone / wanted.document)), folder, f"prism-{wanted.tool_name}")
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


def free_port() -> int:
    with socket.create_server((HOST, 0)) as free:
        return free.getsockname()[1]
