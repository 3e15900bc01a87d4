"""Proxy connections that end while data is still unsent."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

import pytest
import uvloop

from engine.network.proxy_streams import Stream


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_what_is_sent_after_the_end_is_a_connection_error_whatever_the_loop(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def sent() -> None:
        ours, theirs = socket.socketpair()
        with contextlib.closing(theirs):
            stream = Stream(*await asyncio.open_unix_connection(sock=ours))
            stream.abort()
            await asyncio.sleep(0)
            with pytest.raises(ConnectionResetError):
                await stream.send(b"more")
            with pytest.raises(ConnectionResetError):
                stream.send_eof()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(sent())
