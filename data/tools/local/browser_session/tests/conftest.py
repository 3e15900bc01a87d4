"""Sessions, a site for them, and a proxy in the place of the sandbox's."""

import asyncio
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

import chromium
from actions import ACTIONS, Call
from failures import Failure
from gateway import target_of
from sessions import Sessions


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = b"<title>T</title><p>one</p><button onclick='document.body.append(42)'>go</button><input id=i><a target=_blank href=/new>new</a>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None: ...


class Upstream:
    """A proxy that serves one request for each connection, and refuses paths with `/refused`."""

    async def start(self) -> str:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/refused" in head:
            body = b"tool-agent sandbox: no.example is at 10.0.0.1.\n"
            writer.write(b"HTTP/1.1 403 No\r\nProxy-Status: tool-agent; error=destination_ip_prohibited\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        else:
            try:
                far_reader, far_writer = await asyncio.open_connection(*target_of(head))
            except OSError:
                writer.close()
                return
            line, _, rest = head.partition(b"\r\n")
            method, address, version = line.split(b" ")
            path = b"/" + address.split(b"/", 3)[3]
            far_writer.write(b" ".join((method, path, version)) + b"\r\nConnection: close\r\n" + rest.replace(b"keep-alive", b"close"))
            writer.write(await far_reader.read())
            far_writer.close()
        writer.close()

    def close(self) -> None:
        self.server.close()


class Desk:
    """Makes actions by their names."""

    def __init__(self, sessions: Sessions, folder) -> None:
        self.sessions, self.folder = sessions, folder

    async def do(self, action: str, call_id: str = "call-1", **params):
        import msgspec

        kind, function = ACTIONS[f"/{action}"]
        return await function(self.sessions, msgspec.convert(params, kind), Call(call_id, self.folder))

    async def reason(self, action: str, **params) -> str:
        with pytest.raises(Failure) as caught:
            await self.do(action, **params)
        return caught.value.body["error"]["details"]["reason"]


@pytest.fixture
def with_desk(tmp_path):
    """Runs a function in its own event loop, and checks that no browser is left."""
    if not chromium.BINARY.exists() and shutil.which("chromium") is None:
        pytest.skip("chromium is not installed")

    def run(use, **options) -> None:
        async def main() -> None:
            upstream = Upstream()
            sessions = Sessions(await upstream.start(), **options)
            try:
                await use(Desk(sessions, tmp_path))
            finally:
                profiles = [session.profile for session in sessions.living.values()]
                await sessions.close()
                upstream.close()
            assert not [profile for profile in profiles if profile is not None and profile.exists()]

        asyncio.run(main())

    return run
