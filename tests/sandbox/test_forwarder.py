"""An idle forwarder sleeps: only then does `step` return without events."""

import socket
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.runtimes.sandbox import inside
from engine.runtimes.sandbox.inside import Forwarder

_IDLE_S = 0.05
_STEPS = 100_000
_BUFFERS = 64 * 1024 * 1024
"""More than the kernel keeps on the way."""


class Ways:
    """A forwarder, its target and its clients, all non-blocking."""

    def __init__(self, path: Path, backlog: int = 128) -> None:
        self._path = path
        door = socket.socket(socket.AF_UNIX)
        door.bind(str(path))
        door.listen(128)
        self.served = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.served.setblocking(False)
        self.forwarder = Forwarder()
        self.forwarder.listen(door, self.served.getsockname()[:2])
        self._open: list[socket.socket] = [self.served]

    def client(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        self._open.append(client)
        client.connect(str(self._path))
        client.setblocking(False)
        return client

    def accepted(self) -> socket.socket:
        self.settle()
        return self.taken()

    def taken(self) -> socket.socket:
        """The next connection that has arrived at the target."""
        one, _ = self.served.accept()
        self._open.append(one)
        one.setblocking(False)
        return one

    def settle(self) -> None:
        for _ in range(_STEPS):
            if not self.forwarder.step(_IDLE_S):
                return
        pytest.fail("It is never idle.")

    def close(self) -> None:
        for one in self._open:
            one.close()
        self.settle()
        self.forwarder.finish()


@pytest.fixture
def ways(tmp_path: Path) -> Generator[Ways]:
    made = Ways(tmp_path / "door.sock")
    yield made
    made.close()


def flood(ways: Ways, one: socket.socket) -> int:
    """Send until the queue is full; returns the number of bytes."""
    total, piece = 0, b"x" * 65536
    while total <= _BUFFERS:
        before = total
        try:
            while total <= _BUFFERS:
                total += one.send(piece)
        except BlockingIOError:
            ways.settle()
        if total == before:
            return total
    pytest.fail("It takes without end what nobody reads.")


def test_who_does_not_read_is_waited_for_without_effort_or_memory(ways: Ways) -> None:
    client = ways.client()
    total = flood(ways, ways.accepted())
    while total:
        try:
            total -= len(client.recv(1 << 20))
        except BlockingIOError:
            ways.settle()


def test_it_sleeps_while_connections_are_kept_open_and_when_one_side_has_left(ways: Ways) -> None:
    quiet, full, gone = (ways.client() for _ in range(3))
    servers = [ways.accepted() for _ in range(3)]
    quiet.shutdown(socket.SHUT_WR)
    flood(ways, full)
    flood(ways, gone)
    # It takes no more, and then the client is gone: nobody may be told yet, and nothing can be done.
    gone.close()
    ways.settle()
    assert servers[0].recv(1) == b""
    servers[0].send(b"answer")
    ways.settle()
    assert quiet.recv(100) == b"answer"


def test_with_few_files_it_takes_few_connections_and_sleeps_while_the_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(_: int) -> tuple[int, int]:
        return 40, 40

    monkeypatch.setattr(inside.resource, "getrlimit", few)
    ways = Ways(tmp_path / "door.sock")
    clients = [ways.client() for _ in range(30)]
    servers = [ways.accepted() for _ in range(12)]
    with pytest.raises(BlockingIOError):
        ways.accepted()
    for number in range(30):
        clients[number].close()
        servers[number].close()
        if number < 18:
            servers.append(ways.accepted())
    assert len(servers) == 30
    ways.close()


def test_whom_a_server_with_a_short_queue_does_not_take_at_once_it_gets_when_it_has_room(tmp_path: Path) -> None:
    """The kernel would retry after 1, 2, 4 s: many concurrent connections took most of a minute."""
    ways = Ways(tmp_path / "door.sock", backlog=1)
    clients = [ways.client() for _ in range(30)]
    ways.settle()
    servers, until = list[socket.socket](), time.monotonic() + 3
    while len(servers) < len(clients) and time.monotonic() < until:
        ways.forwarder.step(_IDLE_S)
        with suppress(BlockingIOError):
            servers.append(ways.taken())
    assert len(servers) == len(clients)
    ways.close()


def test_a_server_whose_queue_is_full_may_still_connect_to_its_proxy(tmp_path: Path) -> None:
    """Otherwise a program that serves one call at a time and sends a request within it would never finish."""
    ways = Ways(tmp_path / "door.sock", backlog=1)
    proxy = socket.socket(socket.AF_UNIX)
    proxy.bind(str(tmp_path / "proxy.sock"))
    proxy.listen()
    proxy.settimeout(0)
    inner = socket.create_server(("127.0.0.1", 0))
    ways.forwarder.listen(inner, str(tmp_path / "proxy.sock"))
    for _ in range(30):
        ways.client()
    ways.settle()
    with socket.create_connection(inner.getsockname()[:2]):
        ways.settle()
        proxy.accept()[0].close()
    ways.close()
    proxy.close()


def test_who_waits_for_a_server_when_it_ends_is_told(tmp_path: Path) -> None:
    ways = Ways(tmp_path / "door.sock", backlog=1)
    clients = [ways.client() for _ in range(9)]
    ways.settle()
    ways.forwarder.finish()
    for client in clients:
        client.settimeout(0)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
    ways.close()


def test_a_server_that_takes_nobody_for_long_is_asked_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(inside, "time", SimpleNamespace(monotonic=lambda: now))
    ways = Ways(tmp_path / "door.sock", backlog=1)
    for _ in range(9):
        ways.client()
    ways.settle()
    now += 60
    ways.forwarder.step(0)
    begun = time.monotonic()
    assert not ways.forwarder.step(None)
    assert time.monotonic() - begun > 0.5
    monkeypatch.undo()
    ways.close()
