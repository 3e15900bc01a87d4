"""Malformed requests: duplicate headers, ids that are paths, missing bodies, ambiguous framing."""

import socket
import time
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from tests.attacks.attack import Attack, Kind, Target, expect

__all__ = ["KIND", "connected", "raw"]

_ECHO = {"tool_id": "echo", "params": {"message": "x"}}
_CALLERS_FAULT = range(400, 500)
_READ_S = 10.0


def headers_twice(target: Target) -> str:
    told: list[str] = []
    for name, one, other in (
        ("X-Call-Id", "call-aaaaaaaaaa", "call-bbbbbbbbbb"),
        ("Idempotency-Key", "one", "other"),
    ):
        answer = target.ask("POST", "/run_tool", json=_ECHO, headers=[(name, one), (name, other)])
        expect(answer.status_code == HTTPStatus.BAD_REQUEST, f"two {name}: HTTP {answer.status_code}")
        told.append(str(answer.status_code))
    return ", ".join(told)


def callback_port(target: Target) -> str:
    """Each is refused because of its URL: the rest of the request is valid."""
    told: list[str] = []
    for url in (
        "http://127.0.0.1:0/x",
        "http://[::1]:0/",
        "file:///etc/passwd",
        "http://169.254.169.254/",
        "http://a:b@localhost/",
        "x" * 9000,
    ):
        answer = target.post("/run_tool", {**_ECHO, "mode": "async", "callback_url": url})
        expect(answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, f"{url[:40]}: HTTP {answer.status_code}: {answer.text[:100]}")
        [error] = answer.json()["errors"]
        expect("callback_url" in error["field"], f"{url[:40]}: refused for {error['field']}")
        expect("secret" not in error["message"], f"{url[:40]}: refused as nothing is signed, not for itself")
        told.append(str(answer.status_code))
    return ", ".join(told)


def since(target: Target) -> str:
    told: list[str] = []
    for value in ("0.5", "1e3", "-1", "99999999999999", "NaN", "2026-13-01", "now"):
        answer = target.ask("GET", f"/audit?since={value}")
        expect(answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, f"since={value}: HTTP {answer.status_code}")
        told.append(str(answer.status_code))
    return told[0]


def allowed_methods(target: Target) -> str:
    """A 405 names every allowed method."""
    answer = target.ask("PUT", "/tools/echo")
    expect(answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED, f"HTTP {answer.status_code}")
    allowed = {method.strip() for method in answer.headers.get("Allow", "").split(",")}
    expect({"GET", "DELETE"} <= allowed, f"Allow: {sorted(allowed)}")
    return f"405, Allow: {', '.join(sorted(allowed))}"


def ids(target: Target) -> str:
    """Ids that are paths, in every place that takes an id."""
    odd = (
        "..%2f..%2fowner.lock",
        "%2e%2e",
        "..%5c..",
        "%00",
        "a%0d%0aX: y",
        "%ff%fe",
        "x" * 5000,
        "call-%2e%2e%2f%2e%2e%2fetc",
        "%ed%a0%80",
    )
    seen: set[int] = set()
    for place in ("/tools/{}", "/files/{}", "/tasks/{}", "/tasks/{}/events", "/tools/{}/versions"):
        for one in odd:
            answer = target.ask("GET", place.format(one))
            expect(answer.status_code in {200, *_CALLERS_FAULT}, f"{place.format(one)[:60]}: HTTP {answer.status_code}")
            expect(answer.status_code != HTTPStatus.OK or "detail" in answer.text, f"{place.format(one)[:60]} was found")
            seen.add(answer.status_code)
    return ", ".join(map(str, sorted(seen)))


def foreign(target: Target) -> str:
    """Foreign origins, foreign hosts, and forwarding headers."""
    told: list[str] = []
    for headers in (
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "localhost@evil.example"},
        {"Host": "evil.example", "X-Forwarded-Host": "localhost", "X-Forwarded-For": "127.0.0.1", "Forwarded": "host=localhost"},
        {"Host": "evil.example", "X-Original-URL": "/health", "X-Rewrite-URL": "/health", "X-HTTP-Method-Override": "GET"},
    ):
        answer = target.ask("POST", "/run_tool", json=_ECHO, headers=headers)
        expect(answer.status_code in _CALLERS_FAULT, f"{headers}: HTTP {answer.status_code}")
        told.append(str(answer.status_code))
    return ", ".join(told)


def smuggled(target: Target) -> str:
    """Ambiguous requests are refused or read as one request: a smuggled request is never served."""
    hidden = b"DELETE /tools/echo HTTP/1.1\r\nHost: localhost\r\n\r\n"
    length = str(len(hidden)).encode()
    told: list[str] = []
    for framing in (
        b"Content-Length: " + length + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
        b"Content-Length: 0\r\nContent-Length: " + length + b"\r\n\r\n" + hidden,
        b"Transfer-Encoding: xchunked\r\nContent-Length: " + length + b"\r\n\r\n" + hidden,
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
        b"Content-Length: +0\r\n\r\n" + hidden,
        b"Content-Length: -1\r\n\r\n" + hidden,
        b"X: a\r\n continued\r\nContent-Length: 0\r\n\r\n",
        b"X: \x00\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + hidden,
    ):
        said = raw(target, b"POST /search_tools HTTP/1.1\r\nHost: localhost\r\n" + framing)
        expect((b'"destroyed"' not in said and said.count(b"HTTP/1.1") <= 1) or b" 400 " in said, f"{framing[:40]!r}: {said[:200]!r}")
        told.append(said[9:12].decode("latin-1") or "closed")
    expect(target.ask("GET", "/tools/echo").status_code == HTTPStatus.OK, "echo is gone")
    return ", ".join(told)


def slow_bodies(target: Target) -> str:
    """Two hundred callers announce a body and send it very slowly; another caller is still answered."""
    count = 200 if target.is_long else 60
    head = b"POST /run_tool HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
    connections = [connected(target) for _ in range(count)]
    try:
        for one in connections:
            one.sendall(head)
        end = time.monotonic() + (15 if target.is_long else 2)
        while time.monotonic() < end:
            _trickle(connections)
            answer = target.call("echo", {"message": "x"})
            expect(answer.status_code == HTTPStatus.OK, f"another caller: HTTP {answer.status_code}")
    finally:
        for one in connections:
            one.close()
    return f"{count} wait, others are served"


def slow_heads(target: Target) -> str:
    connections = [connected(target) for _ in range(200)]
    try:
        for one in connections:
            one.sendall(b"POST /run_tool HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        answer = target.call("echo", {"message": "x"})
        expect(answer.status_code == HTTPStatus.OK, f"another caller: HTTP {answer.status_code}")
    finally:
        for one in connections:
            one.close()
    return "200 wait, others are served"


def long_heads(target: Target) -> str:
    said = raw(target, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"0" * (8 << 20) + b"\r\n\r\n")
    expect(b" 200 " not in said[:20], said[:60].decode("latin-1"))
    many = raw(
        target, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: 1\r\n" % number for number in range(100_000)) + b"\r\n"
    )
    return f"{said[9:12].decode('latin-1') or 'closed'}, {many[9:12].decode('latin-1') or 'closed'}"


def raw(target: Target, sent: bytes) -> bytes:
    """The complete answer to these bytes."""
    said = b""
    with connected(target) as connection:
        connection.settimeout(1.5)
        try:
            connection.sendall(sent)
            end = time.monotonic() + _READ_S
            while time.monotonic() < end and (part := connection.recv(65536)):
                said += part
        except OSError:
            return said
    return said


def connected(target: Target) -> socket.socket:
    address = urlsplit(target.service.api_url)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=10)


def _trickle(connections: Iterable[socket.socket]) -> None:
    for one in connections:
        try:
            one.sendall(b" ")
        except OSError:
            # The service may end whom it does not want to wait for.
            continue


KIND = Kind(
    "requests",
    (
        Attack("headers-twice", "two differing `X-Call-Id`, two differing `Idempotency-Key`", headers_twice),
        Attack("callback-port", "callbacks to port 0, files, metadata addresses", callback_port),
        Attack("since", "times of the audit that are none", since),
        Attack("allowed-methods", "a method that a route does not have", allowed_methods),
        Attack("ids", "ids that are paths, halves of characters, very long", ids),
        Attack("foreign", "other hosts' names, other sites' pages, headers of proxies", foreign),
        Attack("smuggled", "a request inside a request, framed in nine ways", smuggled),
        Attack("long-heads", "a header of 8 MiB, 100,000 headers", long_heads),
        Attack("slow-heads", "200 callers who never end their headers", slow_heads),
        Attack("slow-bodies", "callers who send a byte of their body now and then", slow_bodies, is_load=True),
    ),
    settings={"SECRET_CALLBACK": "of-the-attacks"},
)
