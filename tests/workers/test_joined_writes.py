"""What is written in one turn of the event loop is sent together; a lot, and what is written before a close, at once."""

import asyncio
import socket

import uvloop

from workers.front.joined_writes import JoinedWrites

_LARGE = b"x" * 65_537


def _sent(*written: bytes, close: bool = False) -> tuple[bytes, bytes]:
    """What a client has received before the turn has ended, after the first write, and after it."""

    async def main() -> tuple[bytes, bytes]:
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(asyncio.Protocol, ours)
            joined, early = JoinedWrites(transport), b""
            for data in written:
                joined.write(data)
                early = early or _received(theirs)
            if close:
                joined.close()
            theirs.settimeout(5)
            late = await asyncio.to_thread(theirs.recv, 1_000_000)
            transport.close()
            return early, late

    return uvloop.run(main())


def _received(client: socket.socket) -> bytes:
    try:
        return client.recv(1_000_000)
    except BlockingIOError:
        return b""


def test_a_head_and_its_body_are_sent_together() -> None:
    assert _sent(b"head ", b"body") == (b"", b"head body")


def test_nothing_is_lost_before_a_close() -> None:
    assert _sent(b"head ", b"body", close=True) == (b"", b"head body")


def test_much_is_not_held() -> None:
    assert _sent(_LARGE, b"end") == (_LARGE, b"end")
