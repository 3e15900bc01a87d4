"""The steps of a login and its requests, without a service."""

import gzip
from collections.abc import AsyncIterator

import anyio
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from engine.runtimes.failures import NotSent
from engine.runtimes.mcp.oauth.flow import Flow
from engine.runtimes.mcp.oauth.sending import asking
from toolagent.contracts.mcp_oauth import McpGrant, McpOAuth
from toolagent.testing.servers.serving import ServerThread

BASE = "https://far.example"
METADATA = {
    "issuer": BASE,
    "authorization_endpoint": f"{BASE}/authorize",
    "token_endpoint": f"{BASE}/token",
    "response_types_supported": ["code"],
}


async def test_an_authorization_server_that_repeats_a_clients_secret_is_quoted_without_it() -> None:
    async def ask(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json=METADATA) if "authorization-server" in request.url.path else httpx2.Response(404)
        return httpx2.Response(401, text=f"Who is {request.headers['Authorization']}, or the-robots-secret?")

    robot = McpOAuth(client_id="robot", client_secret="secret:ROBOT", grant=McpGrant.CLIENT_CREDENTIALS)  # noqa: S106 - its name
    with pytest.raises(NotSent) as refusal:
        await Flow(f"{BASE}/mcp", ask, given=robot, secret="the-robots-secret").begun(httpx2.Response(401))  # noqa: S106 - of a test
    assert refusal.value.message.endswith("401 Who is Basic ***, or ***?")


async def _answered(request: Request) -> Response:
    async def forever() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await anyio.sleep(0.01)

    match request.url.path:
        case "/large":
            return Response(b" " * 300_000)
        case "/packed":
            return Response(gzip.compress(b"{}"), headers={"Content-Encoding": "gzip"})
        case _:
            return StreamingResponse(forever())


@pytest.mark.parametrize(("path", "said"), [("large", "more than 262144 bytes"), ("packed", "it is packed"), ("endless", "within 0.5 s")])
async def test_an_answer_of_a_login_is_bounded(monkeypatch: pytest.MonkeyPatch, path: str, said: str) -> None:
    monkeypatch.setattr("engine.runtimes.mcp.oauth.sending._ANSWER_S", 0.5)
    async with ServerThread(Starlette(routes=[Route("/{rest:path}", _answered)])) as server:
        with pytest.raises(NotSent, match=said):
            await asking(None)(httpx2.Request("GET", f"{server.url}/{path}"))
