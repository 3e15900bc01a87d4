"""The door hands over a socket, also after a moment in which this machine could not."""

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import Generator
from pathlib import Path

from structlog.testing import capture_logs

from engine.runtimes.sandbox.door import Door


@contextlib.contextmanager
def full() -> Generator[None]:
    """No file can be opened meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_who_asks_while_there_is_no_descriptor_gets_his_socket_when_there_is(tmp_path: Path) -> None:
    path, tool = tmp_path / "door.sock", tmp_path / "tool.sock"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    door = Door(listening, tool)
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        door.start()
        with capture_logs() as logs, full():
            async with asyncio.timeout(10):
                while not logs:  # noqa: ASYNC110 - it tells nobody else
                    await asyncio.sleep(0)
        assert [entry["event"] for entry in logs] == ["door_not_opened"]
        asking.settimeout(30)
        _, fds, _, _ = await asyncio.to_thread(socket.recv_fds, asking, 1, 1)
    with socket.socket(fileno=fds[0]), socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(tool))
    await door.aclose()
