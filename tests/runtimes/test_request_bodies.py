"""Requests that are not JSON, and credentials other than a key: real requests, as they arrive."""

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.request_parts import Places, request_parts
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.runtime import ToolRequest
from tests.runtimes.conftest import silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ParameterStyle, RemoteSource


@dataclass
class Arrived:
    """The requests that a server got: path, headers and body. Tokens of `/token` are valid for `lasts` seconds."""

    url: str = ""
    lasts: int = 3600
    takes_basic: bool = True
    seen: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list[tuple[str, dict[str, str], bytes]])

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, JsonValue]:
        self.seen.append((path, headers, body))
        if path != "/token":
            return (401, None) if headers.get("authorization") == "Bearer token-1" and path == "/revoked" else (200, {"ok": True})
        if "authorization" in headers and not self.takes_basic:
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": f"token-{sum(one[0] == '/token' for one in self.seen)}", "expires_in": self.lasts}

    def paths(self) -> list[str]:
        return [path for path, _, _ in self.seen]


@pytest.fixture
def server() -> Generator[Arrived]:
    arrived = Arrived()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, said = arrived.answer(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            answer = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.daemon_threads = True
        arrived.url = f"http://127.0.0.1:{serving.server_address[1]}"
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield arrived
        serving.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a call that names files."""
    for name in ("in/a", "out"):
        (tmp_path / "calls" / "tool" / "call-12345678" / name).mkdir(parents=True)
    return tmp_path / "calls" / "tool" / "call-12345678"


SECRETS = {"LOGIN": "käthe:p:w", "COOKIE": "abc123", "CLIENT": "id:a secret", "NO_PAIR": "nothing", "TWO": "a; b=c"}


@pytest.fixture
def runtime(http: HttpExchange) -> RemoteRuntime:
    return RemoteRuntime(http, SECRETS.get)


async def send(runtime: RemoteRuntime, source: RemoteSource, folder: Path, **params: JsonValue) -> JsonValue:
    running = await runtime.start(ToolManifest(tool_id="there", name="There"), source, silent)
    return await runtime.call(running, source, ToolRequest("call-12345678", params, 5.0, folder / "out"))


async def test_a_form_is_sent_as_a_form(runtime: RemoteRuntime, server: Arrived, folder: Path) -> None:
    source = RemoteSource(remote_url=server.url, body_encoding="form", parameter_styles={"address": "deep"})
    await send(runtime, source, folder, name="a b&c", tags=["x", "y"], none=None, address={"city": "O", "lines": ["1", "2"]})
    _, headers, body = server.seen[0]
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(body.decode()) == {"name": ["a b&c"], "tags": ["x", "y"], "address[city]": ["O"], "address[lines]": ["1", "2"]}


@pytest.mark.parametrize("body", [None, "change"])
async def test_json_has_the_type_that_its_source_names(runtime: RemoteRuntime, server: Arrived, folder: Path, body: str | None) -> None:
    source = RemoteSource(remote_url=server.url, body_parameter=body, body_media_type="application/merge-patch+json")
    await send(runtime, source, folder, change={"a": 1})
    assert server.seen[0][1]["content-type"] == "application/merge-patch+json"


async def test_the_parts_of_a_body_are_texts_json_and_files(runtime: RemoteRuntime, server: Arrived, folder: Path) -> None:
    (folder / "in/a/one.txt").write_bytes(b"\x00the bytes")
    source = RemoteSource(remote_url=server.url, body_encoding="multipart", file_parameters=("file",))
    await send(runtime, source, folder, file=str(folder / "in/a/one.txt"), title="T", about={"n": 1}, flags=[True, False])
    _, headers, body = server.seen[0]
    assert headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="file"; filename="one.txt"' in body
    assert b"\x00the bytes" in body
    assert b'name="about"\r\nContent-Type: application/json\r\n\r\n{"n":1}' in body
    assert body.count(b'name="flags"') == 2
    assert b'name="title"\r\n\r\nT\r\n' in body


async def test_a_file_is_sent_as_it_is_and_its_size_is_said(runtime: RemoteRuntime, server: Arrived, folder: Path) -> None:
    content = bytes(range(256)) * 4096
    (folder / "in/a/image.png").write_bytes(content)
    source = RemoteSource(
        remote_url=server.url, body_encoding="octets", body_parameter="file", body_media_type="image/png", file_parameters=("file",)
    )
    await send(runtime, source, folder, file=str(folder / "in/a/image.png"))
    _, headers, body = server.seen[0]
    assert (headers["content-type"], headers["content-length"], body == content) == ("image/png", str(len(content)), True)


async def test_no_file_is_sent_but_those_of_the_call(runtime: RemoteRuntime, server: Arrived, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("not for them")
    (folder / "in/a/link").symlink_to(tmp_path / "secret.txt")
    (folder / "in/linked").symlink_to(tmp_path)
    (folder / "out/made").write_text("by the tool")
    source = RemoteSource(remote_url=server.url, body_encoding="multipart", file_parameters=("file",))
    bad = ("/etc/passwd", "in/a", "", f"{folder}/in/a", f"{folder}/in/a/link", f"{folder}/in/linked/secret.txt", f"{folder}/out/made")
    for path in (*bad, f"{folder}/in/a/../../../../../secret.txt", f"{folder}/in/a/\0"):
        with pytest.raises(NotSent) as caught:
            await send(runtime, source, folder, file=path)
        assert caught.value.error_type is ErrorType.VALIDATION_ERROR
    assert server.seen == []


async def test_a_request_without_a_body_has_none(runtime: RemoteRuntime, server: Arrived, folder: Path) -> None:
    await send(runtime, RemoteSource(remote_url=server.url, body_encoding="none"), folder)
    _, headers, body = server.seen[0]
    assert (body, headers["content-length"], "content-type" in headers) == (b"", "0", False)


@pytest.mark.parametrize(
    ("style", "value", "query"),
    [
        ("comma", ["a", 1, None], [("x", "a,1")]),
        ("space", ["a", "b"], [("x", "a b")]),
        ("pipe", ["a", "b"], [("x", "a|b")]),
        ("comma", {"k": 1}, [("x", "k,1")]),
        ("deep", {"k": 1, "l": {"m": [2, 3]}}, [("x[k]", "1"), ("x[l][m]", "2"), ("x[l][m]", "3")]),
        ("fields", {"k": 1, "l": ["a", "b"]}, [("k", "1"), ("l", "a"), ("l", "b")]),
        ("json", "text", [("x", '"text"')]),
    ],
)
def test_lists_and_objects_are_written_in_the_style_of_their_parameter(
    style: ParameterStyle, value: JsonValue, query: list[tuple[str, str]]
) -> None:
    assert list(request_parts("GET", "/", {"x": value}, Places(styles={"x": style})).query) == query


def test_a_list_can_be_a_part_of_the_path_and_a_header() -> None:
    parts = request_parts(
        "GET", "/{a}", {"a": ["x", "y/z"], "b": [1, 2]}, Places(headers={"b": "X-B"}, styles={"a": "comma", "b": "comma"})
    )
    assert (parts.path, parts.headers) == ("/x%2Cy%2Fz", (("X-B", "1,2"),))


def test_a_delete_has_a_body_where_a_parameter_is_said_to_be_that() -> None:
    parts = request_parts("DELETE", "/{id}", {"id": 1, "force": True, "body": {"why": "old"}}, Places(body="body"))
    assert (parts.path, parts.query) == ("/1", (("force", "true"),))
    assert parts.body == request_parts("POST", "/", {"why": "old"}).body


async def test_a_login_is_sent_in_base64_and_a_cookie_by_its_name(runtime: RemoteRuntime, server: Arrived, folder: Path) -> None:
    plain = RemoteSource(remote_url=server.url)
    await send(runtime, plain.model_copy(update={"auth_kind": "basic", "remote_api_key": "secret:LOGIN"}), folder)
    cookie = {"auth_kind": "cookie", "auth_cookie": "session", "remote_api_key": "secret:COOKIE"}
    await send(runtime, plain.model_copy(update=cookie), folder)
    assert base64.b64decode(server.seen[0][1]["authorization"].removeprefix("Basic ")).decode() == SECRETS["LOGIN"]
    assert server.seen[1][1]["cookie"] == "session=abc123"


@pytest.mark.parametrize(
    "shown",
    [
        {"auth_kind": "basic", "remote_api_key": "secret:NO_PAIR"},
        {"auth_kind": "basic", "remote_api_key": "secret:ABSENT"},
        {"auth_kind": "cookie", "auth_cookie": "s", "remote_api_key": "secret:TWO"},
        {"auth_kind": "client_credentials", "token_url": "http://127.0.0.1:1/token", "remote_api_key": "secret:NO_PAIR"},
        {"auth_kind": "client_credentials", "token_url": "http://127.0.0.1:1/token", "remote_api_key": "secret:CLIENT"},
        {"auth_kind": "client_credentials", "remote_api_key": "secret:CLIENT"},
    ],
)
async def test_a_secret_that_is_none_of_its_kind_is_not_sent(
    runtime: RemoteRuntime, server: Arrived, folder: Path, shown: dict[str, str]
) -> None:
    with pytest.raises(NotSent) as caught:
        await send(runtime, RemoteSource(remote_url=server.url).model_copy(update=shown), folder)
    assert (caught.value.error_type, server.seen) == (ErrorType.DEPENDENCY_ERROR, [])


CLIENT = {"auth_kind": "client_credentials", "remote_api_key": "secret:CLIENT", "token_scopes": ("read", "write")}


@pytest.fixture
def client(server: Arrived) -> Callable[[str], RemoteSource]:
    whole = RemoteSource(remote_url=server.url, token_url=f"{server.url}/token").model_copy(update=CLIENT)
    return lambda path: whole.model_copy(update={"remote_path": path})


async def test_a_token_is_asked_for_once_and_kept_until_it_expires(
    runtime: RemoteRuntime, server: Arrived, folder: Path, client: Callable[[str], RemoteSource]
) -> None:
    await asyncio.gather(*(send(runtime, client("/x"), folder) for _ in range(5)))
    assert server.paths() == ["/token", *["/x"] * 5]
    assert {headers["authorization"] for path, headers, _ in server.seen if path == "/x"} == {"Bearer token-1"}
    _, headers, body = server.seen[0]
    assert parse_qs(body.decode()) == {"grant_type": ["client_credentials"], "scope": ["read write"]}
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")) == b"id:a%20secret"


async def test_a_token_that_is_refused_is_asked_for_anew(
    runtime: RemoteRuntime, server: Arrived, folder: Path, client: Callable[[str], RemoteSource]
) -> None:
    with pytest.raises(CallFailed):
        await send(runtime, client("/revoked"), folder)
    await send(runtime, client("/revoked"), folder)
    assert server.paths() == ["/token", "/revoked", "/token", "/revoked"]


async def test_where_a_login_of_the_client_is_not_taken_it_goes_into_the_form(
    runtime: RemoteRuntime, server: Arrived, folder: Path, client: Callable[[str], RemoteSource]
) -> None:
    server.takes_basic = False
    await send(runtime, client("/x"), folder)
    assert parse_qs(server.seen[1][2].decode())["client_secret"] == ["a secret"]
    assert server.seen[2][1]["authorization"] == "Bearer token-2"
