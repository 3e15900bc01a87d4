"""Tools on a server of its own, which records its requests and answers on command; and a catalog of these tools."""

import json
import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

from pydantic import JsonValue

__all__ = ["MANY", "FarServer", "far_catalog", "far_server"]

MANY = 20
_LOOK_S = 0.02
_ACTING: dict[str, JsonValue] = {"side_effect_scope": "network", "idempotent": False}
_HARMLESS: dict[str, JsonValue] = {"side_effect_scope": "none"}


class FarServer:
    """`begun` counts the requests by their line; `cut` those whose connection was closed before the answer; `answered` has the lines of the
    others.

    A request with `held: true` is answered once its line is among the `released`. `look` is called when a request begins.
    """

    def __init__(self) -> None:
        self.url = ""
        self.look: Callable[[], None] = lambda: None
        self.begun, self.cut = Counter[str](), Counter[str]()
        self.released, self.answered = set[str](), set[str]()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, far: FarServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.far = far


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/mcp"):
            self._speak(asked)
        elif self._acted(asked):
            self._say(200, {"done": asked["line"]})
            self._far.answered.add(asked["line"])

    def do_GET(self) -> None:
        self._say(405, {})

    @property
    def _far(self) -> FarServer:
        return cast("_Server", self.server).far

    do_DELETE = do_GET  # noqa: N815 - as the library has them

    def _acted(self, asked: dict[str, JsonValue]) -> bool:
        far, line = self._far, str(asked["line"])
        far.begun[line] += 1
        far.look()
        while asked.get("held") and line not in far.released:
            if select.select([self.connection], [], [], _LOOK_S)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                far.cut[line] += 1
                self.close_connection = True
                return False
        return True

    def _speak(self, asked: dict[str, JsonValue]) -> None:
        match asked["method"]:
            case _ if "id" not in asked:
                self._say(202, {})
            case "initialize":
                version = cast("dict[str, JsonValue]", asked["params"])["protocolVersion"]
                self._result(asked, {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "far", "version": "1"}})
            case "tools/call":
                self._result(asked, {"content": [{"type": "text", "text": "done"}]})
            case _:
                self._result(asked, {})

    def _result(self, asked: dict[str, JsonValue], value: JsonValue) -> None:
        self._say(200, {"jsonrpc": "2.0", "id": asked["id"], "result": value})

    def _say(self, status: int, value: JsonValue) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def far_server() -> Generator[FarServer]:
    """A server that runs until the block ends."""
    far = FarServer()
    with _Server(far) as server:
        far.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield far
        server.shutdown()
        thread.join()


def far_catalog(folder: Path, url: str, many: int = MANY, timeout_s: int = 60) -> Path:
    """A data folder with the HTTP tools `far_acts_N` and `far_asks_N`, with `far_single`, which takes one call at a time, and with
    `far_mcp`, of an MCP server.

    There are `many` of each, because a tool that was slow does not use the lane any more.
    """
    folder.mkdir()
    http: JsonValue = {"type": "remote", "remote_url": url, "endpoint_path": "/act"}
    far: dict[str, tuple[dict[str, JsonValue], JsonValue]] = {
        **{f"far_acts_{number}": (_ACTING, http) for number in range(many)},
        **{f"far_asks_{number}": (_HARMLESS, http) for number in range(many)},
        "far_single": ({**_ACTING, "concurrency": 1}, http),
        "far_mcp": (_HARMLESS, {"type": "mcp", "tool_name": "act", "url": f"{url}/mcp"}),
    }
    tools = [
        {"tool_id": name, "name": name, "backend_runtime": "remote", "timeout_s": timeout_s, **more} for name, (more, _) in far.items()
    ]
    (folder / "registry.json").write_text(json.dumps({"version": "2.0", "tools": tools}), "utf-8")
    (folder / "sources.json").write_text(json.dumps({"version": "2.0", "sources": {name: [source] for name, (_, source) in far.items()}}))
    return folder
