"""Access checks of the front door."""

import hmac
from contextlib import AbstractAsyncContextManager

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from api.app import create_app
from api.security import Gate
from tests.api.conftest import BASE_URL, House, browse, with_doors

KEY = "schlüssel-😀-à"
EVERY_PATH = ["/tools", "/docs", "/redoc", "/openapi.json", "/nothing", "/tools/status", "/files/x", "/health/", "/Health", "//health"]


def locked(house: House) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return browse(with_doors(house, api_key=KEY))


@pytest.mark.parametrize("path", EVERY_PATH)
async def test_with_a_key_every_path_needs_it(house: House, path: str) -> None:
    async with locked(house) as http:
        answer = await http.get(path)
        assert (answer.status_code, answer.json()["type"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert (await http.get(path, headers={b"Authorization": f"Bearer {KEY}".encode()})).status_code in {200, 404}


async def test_health_never_needs_the_key(house: House) -> None:
    async with locked(house) as http:
        assert (await http.get("/health")).status_code in {200, 503}  # a busy machine may be told of as such


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearer x",
        f"Basic {KEY}".encode(),
        KEY.encode(),
        f"Bearer {KEY}x".encode(),
        f"Bearer {KEY[:-1]}".encode(),
        b"Bearer \xff",
    ],
)
async def test_another_key_is_none(house: House, given: bytes) -> None:
    async with locked(house) as http:
        assert (await http.get("/tools", headers={b"Authorization": given})).status_code == 401


async def test_how_much_of_a_key_is_right_cannot_be_timed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def watched(given: bytes, key: bytes) -> bool:
        compared.append(given)
        return hmac.compare_digest(given, key)

    monkeypatch.setattr("api.security.secrets.compare_digest", watched)
    tried = ("", KEY[:1], KEY[:-1], f"{KEY}x", KEY[::-1], KEY)
    async with locked(house) as http:
        for given in tried:
            await http.get("/tools", headers={b"Authorization": f"Bearer {given}".encode()})
    assert compared == [given.encode() for given in tried]


async def test_the_key_is_wanted_before_the_body_is_read(house: House) -> None:
    async with locked(house) as http:
        assert (await http.post("/run_tool", content=b"x" * 10_000_000)).status_code == 401


async def test_the_scheme_may_be_written_in_any_case(house: House) -> None:
    async with locked(house) as http:
        assert (await http.get("/tools", headers={b"Authorization": f"bEARER {KEY}".encode()})).status_code == 200


async def test_an_empty_key_is_refused_at_the_start(house: House) -> None:
    with pytest.raises(ValueError, match="API key"):
        create_app(with_doors(house, api_key=""))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8001", "", "[::1", "evil@localhost", "192.168.0.1"]
)
async def test_without_a_key_a_foreign_host_name_is_refused(house: House, host: str) -> None:
    for path in ("/tools", "/health"):
        answer = await house.http.get(path, headers={"Host": host})
        assert (answer.status_code, answer.json()["type"]) == (421, "foreign_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8001", "127.0.0.1:80", "[::1]:8001", "[::1]"])
async def test_our_own_names_are_served(house: House, host: str) -> None:
    assert (await house.http.get("/tools", headers={"Host": host})).status_code == 200


async def test_with_a_key_any_host_name_is_served(house: House) -> None:
    async with locked(house) as http:
        assert (await http.get("/health", headers={"Host": "tools.example"})).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://"])
async def test_without_a_key_another_sites_page_is_refused(stocked: House, origin: str) -> None:
    answer = await stocked.http.post("/tools/weather/start", headers={"Origin": origin})
    assert (answer.status_code, answer.json()["type"]) == (403, "foreign_origin")
    assert stocked.client.controls == []


async def test_our_own_documentation_page_may_call(stocked: House) -> None:
    assert (await stocked.http.post("/tools/weather/start", headers={"Origin": BASE_URL})).status_code == 200


async def test_a_host_that_cannot_be_read_does_not_let_in_pages_without_origin(stocked: House) -> None:
    async with browse(with_doors(stocked, allowed_hosts=("127.0.0.1", "", "[::1", "a@b"))) as http:
        answer = await http.post("/tools/weather/start", headers={"Origin": "null"})
        assert (answer.status_code, answer.json()["type"]) == (403, "foreign_origin")
        assert (await http.get("/tools", headers={"Host": ""})).status_code == 421
    assert stocked.client.controls == []


async def knock(kind: str, headers: dict[str, str], api_key: str | None = None) -> tuple[list[str], list[Message]]:
    """The kinds of requests that passed, and the answers to those that did not."""
    passed: list[str] = []
    answered: list[Message] = []

    async def inside(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed.append(scope["type"])

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        answered.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind} if kind == "lifespan" else {"type": kind, "path": "/health", "headers": raw}
    await Gate(inside, api_key, ("localhost",))(scope, receive, send)
    return passed, answered


@pytest.mark.parametrize(
    ("headers", "api_key"),
    [
        ({"Host": "localhost"}, "k"),
        ({"Host": "localhost", "Authorization": "Bearer x"}, "k"),
        ({"Host": "evil.example"}, None),
        ({}, None),
        ({"Host": "localhost", "Origin": "https://evil.example"}, None),
    ],
)
async def test_a_websocket_is_refused_as_a_request_would_be(headers: dict[str, str], api_key: str | None) -> None:
    passed, answered = await knock("websocket", headers, api_key)
    assert passed == []
    assert [(message["type"], message["code"]) for message in answered] == [("websocket.close", 1008)]


@pytest.mark.parametrize(
    ("kind", "headers", "api_key"),
    [
        ("websocket", {"Host": "any", "Authorization": "Bearer k"}, "k"),
        ("websocket", {"Host": "localhost"}, None),
        ("lifespan", {}, "k"),
        ("lifespan", {}, None),
    ],
)
async def test_whoever_may_pass_does(kind: str, headers: dict[str, str], api_key: str | None) -> None:
    assert await knock(kind, headers, api_key) == ([kind], [])
