"""One server behind a tool, by MCP and by plain HTTP.

`python upstream.py --port N`.
It says back what it is told: to `tools/call` of `say` at `/mcp`, and to `POST /say`. Both cost it next to nothing, so what differs is ours.
"""

import argparse
import asyncio
import json
from typing import Any

_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_METHOD_NOT_FOUND = -32601
_SCHEMA = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
_SESSION: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "upstream", "version": "1"},
}


class Server(asyncio.Protocol):
    """HTTP/1.1 as far as clients of the bench speak it."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(_END)) >= 0:
            head, rest = self._received[:end], self._received[end + len(_END) :]
            length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(_LENGTH)), 0)
            if len(rest) < length:
                return
            self._received = rest[length:]
            _, path, _ = head.split(b" ", 2)
            said: dict[str, Any] = json.loads(rest[:length] or b"{}")
            self._answer(_spoken(said) if path == b"/mcp" else {"message": said["message"]})

    def _answer(self, value: dict[str, Any] | None) -> None:
        """None: taken, with nothing to say."""
        text = json.dumps(value).encode() if value is not None else b""
        status = "200 OK" if text else "202 Accepted"
        self._transport.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)


def _spoken(said: dict[str, Any]) -> dict[str, Any] | None:
    if "id" not in said:
        return None
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": said["id"]}
    match said.get("method"):
        case "initialize":
            return {**answer, "result": _SESSION}
        case "tools/list":
            return {**answer, "result": {"tools": [{"name": "say", "inputSchema": _SCHEMA, "outputSchema": _SCHEMA}]}}
        case "tools/call":
            told = {"message": said["params"]["arguments"]["message"]}
            return {**answer, "result": {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told}}
        case method:
            return {**answer, "error": {"code": _METHOD_NOT_FOUND, "message": f"Method not found: {method}"}}


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", port, backlog=256)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_serve(parser.parse_args().port))
