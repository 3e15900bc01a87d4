"""A real HTTP server that receives callbacks, with the answers of the test."""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Received", "Receiver", "running_receiver"]


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Receiver:
    """Answers the first posts with `answers` (a status, with a `Location` for redirects), the others with 204. 0: it hangs."""

    url: str = ""
    answers: list[int] = field(default_factory=list[int])
    location: str = ""
    retry_after: str = ""
    received: list[Received] = field(default_factory=list[Received])
    closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def running_receiver(port: int = 0) -> Generator[Receiver]:
    receiver = Receiver()
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(receiver))
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/told"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(receiver: Receiver) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            place = len(receiver.received)
            receiver.received.append(Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            status = receiver.answers[place] if place < len(receiver.answers) else 204
            if status == 0:
                receiver.closing.wait(60)
                return
            self.send_response(status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            if receiver.retry_after:
                self.send_header("Retry-After", receiver.retry_after)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    return Handler
