"""A running server of this tool, as Tool Agent starts it."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parent.parent


class Server:
    def __init__(self, process: subprocess.Popen[bytes], port: int, output: Path) -> None:
        self.process = process
        self.port = port
        self.output = output

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"X-Output-Dir": str(self.output), "Idempotency-Key": "call-test0000"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def call(self, **params: Any) -> tuple[int, Any]:
        return self.ask("POST", "/", json.dumps(params).encode())

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=10)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "main.py", "--port", str(port)], cwd=PROJECT)
    running = Server(process, port, tmp_path / "output")
    try:
        wait_until_healthy(running)
        yield running
    finally:
        process.kill()
        process.wait()


def wait_until_healthy(server: Server, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert server.process.poll() is None, "the server has ended"
        try:
            if server.ask("GET", "/health")[0] == 200:
                return
        except ConnectionError:
            time.sleep(0.02)
    raise TimeoutError(f"not healthy within {seconds} seconds")
