"""Has its effect at once, a line in a file, then works on until a time is over or a file appears.

Stops when nobody listens any more.
"""

import json
import os
import select
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOME = Path(os.environ["HOME"])  # noqa: TID251 - a tool has no settings of ours
LOCK = threading.Lock()
ACTIVE = 0


def append(path: Path, text: str) -> None:
    with LOCK, path.open("a") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer({"status": "ok", "active": ACTIVE})

    def do_POST(self) -> None:
        global ACTIVE
        params = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOCK:
            ACTIVE += 1
        try:
            self.work(params)
        finally:
            with LOCK:
                ACTIVE -= 1

    def work(self, params: dict) -> None:
        effects = HOME / params["effects"]
        append(effects, params.get("line", "effect"))
        end = time.monotonic() + params.get("seconds", 0)
        until = HOME / params["until"] if "until" in params else None
        while (until and not until.exists()) or (not until and time.monotonic() < end):
            if self.hung_up():
                append(effects.with_suffix(".hung_up"), "seen")
                self.close_connection = True
                return
            time.sleep(0.01)
        self.answer({"line": params.get("line", "effect"), "pid": os.getpid(), "key": self.headers["Idempotency-Key"]})

    def hung_up(self) -> bool:
        ready, _, _ = select.select([self.connection], [], [], 0)
        return bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)

    def answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No log output."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


append(HOME / "starts", str(os.getpid()))
Server(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
