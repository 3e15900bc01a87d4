"""The door of a sandbox, which hands out listening sockets."""

import asyncio
import socket
from pathlib import Path

from engine.runtimes.sandbox.door import Door


async def test_one_who_asks_while_it_closes_is_answered_and_no_connection_stays_open(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as asking:
        listening.bind(str(tmp_path / "door.sock"))
        listening.listen()
        door = Door(listening, tmp_path / "tool.sock")
        door.start()
        await asyncio.sleep(0)
        asking.connect(str(tmp_path / "door.sock"))
        for _ in range(2):  # now the loop has seen the connection
            await asyncio.sleep(0)
        door.close()
        asking.settimeout(5)
        message, descriptors, _, _ = socket.recv_fds(asking, 2, 1)
        with socket.socket(fileno=descriptors[0]) as served:
            assert (message, served.getsockname()) == (b"\0", str(tmp_path / "tool.sock"))
        assert asking.recv(1) == b""
        assert listening.fileno() == -1
