import json
import os
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
    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.process, self.port = process, port

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Idempotency-Key": "call-test0000"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "main.py", "--port", str(port)], cwd=PROJECT, env={**os.environ, "CHROMIUM": "/no/chromium", "HTTP_PROXY": ""}
    )
    running = Server(process, port)
    try:
        for _ in range(600):
            assert process.poll() is None, "the server has ended"
            try:
                running.ask("GET", "/health")
                break
            except ConnectionError:
                time.sleep(0.05)
        yield running
    finally:
        process.kill()
        process.wait()


def test_it_answers_health_and_bad_input_and_ends_on_sigterm(server: Server) -> None:
    assert server.ask("GET", "/health") == (200, {"status": "ok", "active": 0, "sessions": 0})
    status, body = server.ask("POST", "/launch", b'{"allowed_hosts": ["a.example"]}')
    assert (status, body["error"]["type"], body["error"]["details"]["reason"]) == (503, "unavailable", "chromium_missing")
    for params, field in ((b"{}", "allowed_hosts"), (b'{"allowed_hosts": ["http://x"]}', "allowed_hosts[0]"), (b"{no", None)):
        status, body = server.ask("POST", "/launch", params)
        assert (status, body["error"]["type"], body["error"]["details"].get("field")) == (422, "validation_error", field)
    gone = b'{"session_id": "bs-0000000000000000"}'
    assert server.ask("POST", "/stop", gone)[1]["status"] == "already_gone"
    assert server.ask("POST", "/pdf", gone)[1]["error"]["details"]["reason"] == "unknown_session"
    assert server.ask("POST", "/sessions")[1] == {"sessions": []}
    assert server.ask("GET", "/launch")[0] == 404
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=10)
