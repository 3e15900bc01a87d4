"""A tool that behaves as its caller asks: `{"mode": …}` to POST /run.

Notes what happens to it in files of its HOME.
"""

import argparse
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOME = Path(os.environ["HOME"])  # noqa: TID251 - a tool has no settings of ours
LOCK = threading.Lock()
ACTIVE = 0
HEALTH: dict[str, float] = {}


def note(name: str, text: str) -> None:
    with LOCK, (HOME / name).open("a") as file:
        file.write(text + "\n")


def attempt(act) -> str:
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return "done"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(HEALTH.get("delay_s", 0))
        self.answer(HEALTH.get("status", 200), {"status": "ok", "active": ACTIVE, "sessions": HEALTH.get("sessions", 0)})

    def do_POST(self) -> None:
        global ACTIVE
        params = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        with LOCK:
            ACTIVE += 1
        try:
            getattr(self, params.get("mode", "ok"))(params)
        finally:
            with LOCK:
                ACTIVE -= 1

    def ok(self, params: dict) -> None:
        self.answer(200, {"echo": params, "pid": os.getpid()})

    def health(self, params: dict) -> None:
        """Set the answer of the health path: `status`, `sessions`, `delay_s`."""
        HEALTH.update(params)
        self.answer(200, {})

    def fail(self, _params: dict) -> None:
        self.answer(500, {"error": {"type": "execution_error", "message": "as you asked", "details": None}})

    def refuse(self, _params: dict) -> None:
        self.answer(422, {"error": {"type": "validation_error", "message": "not like this", "details": {"path": "$.mode"}}})

    def garble(self, _params: dict) -> None:
        self.send(200, b'{"half": ')

    def nothing(self, _params: dict) -> None:
        self.send(204, b"")

    def flood(self, params: dict) -> None:
        self.answer(200, "x" * params["bytes"])

    def say(self, params: dict) -> None:
        """In these words."""
        self.send(params.get("status", 200), (params["begin"] + params["each"] * params["times"] + params["end"]).encode())

    def headers_back(self, _params: dict) -> None:
        self.answer(200, {name.lower(): value for name, value in self.headers.items()})

    def environment(self, _params: dict) -> None:
        self.answer(200, dict(os.environ))  # noqa: TID251 - a tool has no settings of ours

    def write(self, params: dict) -> None:
        """For each path, whether it could be written, or why not."""
        self.answer(200, {path: attempt(lambda path=path: (HOME / path).write_text("x")) for path in params["paths"]})

    def read(self, params: dict) -> None:
        self.answer(200, {path: attempt(lambda path=path: Path(path).stat()) for path in params["paths"]})

    def reach(self, params: dict) -> None:
        """A port of what the tool takes for its machine."""
        self.answer(200, attempt(lambda: socket.create_connection(("127.0.0.1", params["port"]), 5).close()))

    def fetch(self, params: dict) -> None:
        for _ in range(params["times"]):
            how = attempt(lambda: urllib.request.urlopen(params["url"], timeout=5).close())  # noqa: S310 - as the test says
        self.answer(200, how)

    def where(self, _params: dict) -> None:
        self.answer(200, {"project": str(Path.cwd()), "prefix": sys.prefix})

    def take(self, _params: dict) -> None:
        """Take and keep all inotify instances and message queues of its user."""
        libc = ctypes.CDLL(None)
        instances, queues = 0, 0
        while instances < 1000 and libc.inotify_init1(0) >= 0:
            instances += 1
        while queues < 1000 and libc.mq_open(f"/q{queues}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None) >= 0:
            queues += 1
        self.answer(200, [instances, queues])

    def hang(self, params: dict) -> None:
        """Hang until the caller hangs up, or longer if `stubborn`."""
        note("hanging", "begun")
        while not self.hung_up():
            time.sleep(0.01)
        note("hung_up", "seen")
        while params.get("stubborn"):
            time.sleep(1)
        self.close_connection = True

    def slow(self, params: dict) -> None:
        """Wait until a file appears, in HOME unless its path is absolute."""
        note("hanging", "begun")
        while not (HOME / params["until"]).exists():
            time.sleep(0.01)
        self.answer(200, {"pid": os.getpid()})

    def exit(self, _params: dict) -> None:
        sys.stderr.write("leaving\n")
        sys.stderr.flush()
        os._exit(3)

    def deafen(self, _params: dict) -> None:
        """Accept no more connections, but keep running."""
        self.server.shutdown()
        self.server.server_close()
        self.close_connection = True
        self.answer(200, "deaf")

    def spawn(self, params: dict) -> None:
        """Start a process that outlives this one; with `leave`, in its own session."""
        child = subprocess.Popen(
            [sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"],
            start_new_session=params.get("leave", False),
        )
        self.answer(200, {"child": child.pid, "pid": os.getpid()})

    def shout(self, params: dict) -> None:
        for _ in range(params["lines"]):
            sys.stdout.write("y" * 1023 + "\n")
        sys.stdout.write("the end\n")
        sys.stdout.flush()
        self.answer(200, "done")

    def hung_up(self) -> bool:
        ready, _, _ = select.select([self.connection], [], [], 0)
        return bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)

    def answer(self, status: int, value: object) -> None:
        self.send(status, json.dumps(value).encode())

    def send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No log output."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    note("starts", str(os.getpid()))
    sys.stdout.write(f"Server started on port {port}\n")
    sys.stdout.flush()
    Server(("127.0.0.1", port), Handler).serve_forever()
    signal.pause()  # deaf
