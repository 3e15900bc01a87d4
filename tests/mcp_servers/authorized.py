"""An MCP server that requires a login, with its authorization server: both are those of the SDK, and record logins."""

import base64
import secrets
import socket
import time
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import httpx
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolagent.testing.servers.serving import LOOPBACK, ServerThread

SCOPE = "tickets"


@dataclass
class Doorman(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Lets everyone in unless `refuses` says otherwise. A refresh token is valid once: a second use invalidates all."""

    refuses: str = ""
    lasts_s: int = 3600
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict[str, OAuthClientInformationFull])
    codes: dict[str, AuthorizationCode] = field(default_factory=dict[str, AuthorizationCode])
    access: dict[str, AccessToken] = field(default_factory=dict[str, AccessToken])
    refresh: dict[str, RefreshToken] = field(default_factory=dict[str, RefreshToken])
    used: set[str] = field(default_factory=set[str])
    refreshed: int = 0
    reused: int = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.refuses:
            return construct_redirect_uri(str(params.redirect_uri), error=self.refuses, state=params.state)
        code = AuthorizationCode(
            code=secrets.token_hex(16),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self,
        client: OAuthClientInformationFull,  # noqa: ARG002 - the SDK's form
        authorization_code: str,
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.given(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self,
        client: OAuthClientInformationFull,  # noqa: ARG002 - the SDK's form
        refresh_token: str,
    ) -> RefreshToken | None:
        if refresh_token in self.used:
            self.reused += 1
            self.refresh.clear()
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,
        refresh_token: RefreshToken,
        scopes: list[str],  # noqa: ARG002 - those of the token
    ) -> OAuthToken:
        if refresh_token.token in self.used:
            raise TokenError("invalid_grant")
        self.used.add(refresh_token.token)
        self.refreshed += 1
        return self.given(client.client_id, refresh_token.scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def given(self, client_id: str, scopes: list[str], resource: str | None, *, renewable: bool = True) -> OAuthToken:
        access = AccessToken(token=f"access-{secrets.token_hex(16)}", client_id=client_id, scopes=scopes, resource=resource)
        refresh = RefreshToken(token=f"refresh-{secrets.token_hex(16)}", client_id=client_id, scopes=scopes, resource=resource)
        self.access[access.token] = access.model_copy(update={"expires_at": int(time.time()) + self.lasts_s})
        if renewable:
            self.refresh[refresh.token] = refresh
        token = refresh.token if renewable else None
        return OAuthToken(access_token=access.token, expires_in=self.lasts_s, scope=" ".join(scopes), refresh_token=token)

    @property
    def secrets(self) -> set[str]:
        """All secrets of the logins."""
        made = {client.client_secret for client in self.clients.values() if client.client_secret}
        return {*self.access, *self.refresh, *self.used, *made}


@dataclass
class Authorized:
    """`instead` answers some paths, where it is set. Without the header `routed_by` the MCP server is not found."""

    url: str
    doorman: Doorman
    instead: dict[str, Response] = field(default_factory=dict[str, Response])
    asked: list[str] = field(default_factory=list[str])
    routed_by: str = ""

    def expire(self) -> None:
        """Refuse all tokens issued so far."""
        self.doorman.access.clear()


@contextmanager
def authorized(*, own_clients: dict[str, str] | None = None, registers: bool = True) -> Generator[Authorized]:
    """`own_clients` are ids and secrets of clients that log in as themselves."""
    with socket.create_server((LOOPBACK, 0)) as probe:
        port = int(probe.getsockname()[1])
    base, doorman = f"http://{LOOPBACK}:{port}", Doorman()
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(base),
        resource_server_url=AnyHttpUrl(f"{base}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=registers, valid_scopes=[SCOPE], default_scopes=[SCOPE]),
        required_scopes=[SCOPE],
        validate_token_resource=True,
    )
    server = MCPServer("tickets", auth_server_provider=doorman, auth=settings)

    @server.tool()
    def whoami() -> str:  # pyright: ignore[reportUnusedFunction] - it is called by its name
        """Says whose token it was shown, and the token itself."""
        token = get_access_token()
        return f"client {token.client_id} with {token.token}" if token else "nobody"

    site = Authorized(f"{base}/mcp", doorman)
    app = Starlette(routes=[Mount("/", _Door(server.streamable_http_app(), site, own_clients or {}))], lifespan=_running(server))
    with ServerThread(app, port):
        yield site


async def visited(url: str) -> str:
    """The address to which a browser is redirected from this one."""
    async with httpx.AsyncClient() as client:
        answer = await client.get(url, follow_redirects=False)
    assert answer.is_redirect, answer.text
    return answer.headers["location"]


def _running(server: MCPServer) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    return lambda _: server.session_manager.run()


class _Door:
    """In front of the SDK's application: answers of the test, and the grant of clients that log in as themselves, which the SDK lacks."""

    def __init__(self, app: ASGIApp, site: Authorized, clients: dict[str, str]) -> None:
        self._app, self._site = app, site
        self._clients = {_basic(name, secret): name for name, secret in clients.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._site.asked.append(f"{scope['method']} {scope['path']}")
        answer: ASGIApp = self._site.instead.get(scope["path"]) or self._app
        if scope["path"] == "/mcp" and self._site.routed_by and self._site.routed_by not in Headers(scope=scope):
            answer = Response("", 404)
        if scope["path"] == "/token":
            request = Request(scope, receive)
            body = await request.body()
            receive = _replaying(body)
            form = parse_qs(body.decode())
            if form["grant_type"] == ["client_credentials"]:
                answer = self._own(request, form)
        await answer(scope, receive, send)

    def _own(self, request: Request, form: dict[str, list[str]]) -> Response:
        name = self._clients.get(request.headers.get("authorization", ""))
        if name is None:
            return JSONResponse({"error": "invalid_client"}, 401)
        given = self._site.doorman.given(name, [SCOPE], form["resource"][0], renewable=False)
        return JSONResponse(given.model_dump(exclude_none=True))


def _replaying(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _basic(name: str, secret: str) -> str:
    return f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"
