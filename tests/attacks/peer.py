"""A malicious peer: each path misbehaves in another way."""

import functools
import gzip
import json
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Peer", "running_peer"]

_MIB = 1 << 20
_BOMB_MIB = 1024
_DRIP_S = 0.2


class Peer:
    """The peer's port, and the number of requests for each path."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: dict[str, int] = {}
        self.closing = threading.Event()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignored: the attacked side may hang up at any time."""


@contextmanager
def running_peer() -> Generator[Peer]:
    server = _Server(("127.0.0.1", 0), BaseHTTPRequestHandler)
    peer = Peer(f"http://127.0.0.1:{server.server_address[1]}")
    server.RequestHandlerClass = _handler(peer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    # Making them takes longer than a call may.
    for times in (1, 2):
        _bomb(times)
    _zlib_bomb()
    try:
        yield peer
    finally:
        peer.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(peer: Peer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            peer.asked[path] = peer.asked.get(path, 0) + 1
            _ANSWERS.get(path, _plain)(self, peer)

        def log_message(self, format: str, *args: object) -> None:
            """Not logged: it would be a line for each attack."""

    return Handler


def _send(handler: BaseHTTPRequestHandler, body: bytes, **headers: str) -> None:
    handler.send_response(200)
    given = {"Content-Type": "application/json", "Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    for name, value in given.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def _plain(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    _send(handler, b'{"status": "ok"}')


@functools.cache
def _bomb(times: int) -> bytes:
    """A JSON text of `_BOMB_MIB` MiB, packed so often by gzip."""
    body, check = _zeros(zlib.crc32, 0)
    packed = (
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + body + check.to_bytes(4, "little") + (_BOMB_MIB * _MIB + 1 & 0xFFFFFFFF).to_bytes(4, "little")
    )
    for _ in range(times - 1):
        packed = gzip.compress(packed)
    return packed


def _zeros(checked: Callable[[bytes, int], int], start: int) -> tuple[bytes, int]:
    """A number of so many digits by raw deflate, and its checksum. All parts are alike: only one is packed."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    part = pack.compress(b"0" * _MIB) + pack.flush(zlib.Z_FULL_FLUSH)
    check = checked(b"1", start)
    for _ in range(_BOMB_MIB):
        check = checked(b"0" * _MIB, check)
    first = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return first.compress(b"1") + first.flush(zlib.Z_FULL_FLUSH) + part * _BOMB_MIB + pack.flush(), check


@functools.cache
def _zlib_bomb() -> bytes:
    body, check = _zeros(zlib.adler32, 1)
    return b"\x78\xda" + body + check.to_bytes(4, "big")


def _gzip(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    _send(handler, _bomb(1), Content_Encoding="gzip")


def _gzip_twice(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    _send(handler, _bomb(2), Content_Encoding="gzip, gzip")


def _deflate(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    _send(handler, _zlib_bomb(), Content_Encoding="deflate")


def _endless(handler: BaseHTTPRequestHandler, peer: Peer) -> None:
    _chunked(handler, peer, iter(lambda: b"0" * _MIB, b""))


def _drip(handler: BaseHTTPRequestHandler, peer: Peer) -> None:
    """An endless trickle of bytes: no single read takes long."""

    def drops() -> Iterator[bytes]:
        while not peer.closing.wait(_DRIP_S):
            yield b" "

    _chunked(handler, peer, drops())


def _chunked(handler: BaseHTTPRequestHandler, peer: Peer, parts: Iterator[bytes]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for part in parts:
        if peer.closing.is_set():
            return
        handler.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")


def _many_headers(handler: BaseHTTPRequestHandler, peer: Peer) -> None:
    """Endless headers."""
    handler.send_response(200)
    while not peer.closing.is_set():
        handler.send_header(f"X-{time.monotonic_ns()}", "0" * 1000)
        handler.flush_headers()


def _cut_short(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(1 << 40))
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.close_connection = True


def _redirect(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    handler.send_response(307)
    handler.send_header("Location", handler.path)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def _lists(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    _send(handler, json.dumps({"message": [[] for _ in range(330_000)]}).encode())


def _deep(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    _send(handler, b"[" * 100_000 + b"]" * 100_000)


def _long_number(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    _send(handler, b"9" * _MIB)


def _surrogates(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    _send(handler, rb'{"message": "\ud800", "\udfff": "\u0000"}', X_Bad="\xff\xfe")


def _nonsense(handler: BaseHTTPRequestHandler, _peer: Peer) -> None:
    handler.wfile.write(b"HTTP/1.1 2x0 \x00\r\nContent-Length: -1\r\nContent-Length: 5\r\n\r\n\xff\xfe")
    handler.close_connection = True


_ANSWERS: dict[str, Callable[[BaseHTTPRequestHandler, Peer], None]] = {
    "/gzip": _gzip,
    "/gzip-twice": _gzip_twice,
    "/deflate": _deflate,
    "/endless": _endless,
    "/drip": _drip,
    "/headers": _many_headers,
    "/cut-short": _cut_short,
    "/redirect": _redirect,
    "/lists": _lists,
    "/deep": _deep,
    "/long-number": _long_number,
    "/surrogates": _surrogates,
    "/nonsense": _nonsense,
    "/bomb/v1/messages": _gzip_twice,
    "/slow/v1/messages": _drip,
}
PATHS = tuple(path for path in _ANSWERS if "/v1/" not in path)
"""Those that tools are called at; the others are a model's."""
