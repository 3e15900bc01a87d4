"""A tool that costs next to nothing: writes what it is told as a line to a file and says it back.

`python main.py --port N`.
`POST /note` has an effect: `message` becomes a line of a file in the folder `effects` (its home by default); then it works on for
`seconds`. `POST /say` only answers. It is also what the load generator is tried on, since it answers faster than anything else here.
"""

import argparse
import asyncio
import json
import os
import secrets
from pathlib import Path
from typing import Any

_HOME = os.environ.get("HOME", ".")  # noqa: TID251 - a tool has no settings of ours
_OWN = f"effects-{secrets.token_hex(8)}"
"""Of each process: on every host a tool runs as another user, and may not write what that one has made."""

_BODY = b"\r\n\r\n"

Params = dict[str, Any]


class Effects:
    """Files that lines are put at the end of, one a folder; each is opened once."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def add(self, folder: str, line: str) -> None:
        if folder not in self._files:
            self._files[folder] = os.open(Path(folder, _OWN), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self._files[folder], f"{line}\n".encode())


class Server(asyncio.Protocol):
    """HTTP/1.1, as much as is needed: requests with Content-Length, one after the other on a kept connection."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(_BODY)) >= 0:
            head = self._received[:end]
            length = _length(head)
            if len(self._received) < end + 4 + length:
                return
            body, self._received = self._received[end + 4 : end + 4 + length], self._received[end + 4 + length :]
            method, path, _ = head.split(b" ", 2)
            self._take(method, path, body)

    def _take(self, method: bytes, path: bytes, body: bytes) -> None:
        if method == b"GET":
            self._answer({"status": "ok", "active": 0})
            return
        params: Params = json.loads(body or b"{}")
        if path == b"/note":
            self._effects.add(params.get("effects", _HOME), params["message"])
        said = {"message": params["message"]}
        if seconds := params.get("seconds"):
            asyncio.get_running_loop().call_later(seconds, self._answer, said)
        else:
            self._answer(said)

    def _answer(self, value: Params) -> None:
        text = json.dumps(value).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        self._transport.write(head.encode() + text)


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


async def _serve(port: int) -> None:
    effects = Effects()
    server = await asyncio.get_running_loop().create_server(lambda: Server(effects), "127.0.0.1", port, backlog=256)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_serve(parser.parse_args().port))
