"""The steps of a login, by the SDK.

Between the steps a browser is away; it may come back to another process.
"""

import json
import secrets
from contextlib import aclosing
from typing import cast
from urllib.parse import quote

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthTokenError, PKCEParameters
from mcp.client.auth.utils import issuers_match, union_scopes, validate_authorization_response_iss
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from pydantic import AnyUrl, BaseModel, JsonValue, ValidationError

from engine.runtimes.failures import NotSent
from engine.runtimes.given_secrets import remember_given
from engine.runtimes.mcp.oauth.logins import login_required
from engine.runtimes.mcp.oauth.sending import Ask
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.mcp_oauth import McpGrant, McpOAuth
from toolagent.core.loopback import LOOPBACK_NAMES, is_confidential

_REVISION = "2025-11-25"
_TOLD = 300
_BUSY = (408, 429)
_OK, _REFUSED, _UNAUTHORIZED, _BROKEN, _AWAY = 200, 400, 401, 500, 503
_LATER = ("temporarily_unavailable", "slow_down", "server_error")
"""Temporary errors: the same request may succeed later."""
_LONGEST_S = 10**9


class Granted(BaseModel):
    """The result of a login. `given` is the client of the source, if the service did not register one itself.

    `expires_at` is in seconds since 1970.
    """

    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    authorization_server: str | None = None
    given: McpOAuth | None = None

    def remember(self) -> None:
        """Registers its secrets, so that they are masked everywhere."""
        tokens, client = self.tokens, self.client
        for secret in (tokens and tokens.access_token, tokens and tokens.refresh_token, client and client.client_secret):
            if secret:
                remember_given(secret)
        if client and client.client_secret:
            # In the form of a header.
            remember_given(f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}")


class Visit(BaseModel):
    """A login that waits until a browser has opened `url`."""

    url: str
    state: str
    verifier: str
    redirect_uri: str
    scope: str | None = None
    granted: Granted


class Flow(OAuthClientProvider):
    """One step of a login. `granted` is the result of earlier steps; `more` are additional scopes. Its methods raise NotSent."""

    def __init__(
        self,
        url: str,
        ask: Ask,
        granted: Granted | None = None,
        *,
        redirect_uri: str | None = None,
        given: McpOAuth | None = None,
        secret: str | None = None,
        more: str | None = None,
        document: str | None = None,
    ) -> None:
        """`secret` belongs to the client `given`; `document` is a URL of the client's metadata, for servers that take one."""
        is_here = redirect_uri is None or httpx2.URL(redirect_uri).host in LOOPBACK_NAMES
        metadata = OAuthClientMetadata(
            client_name="Tool Agent",
            redirect_uris=[AnyUrl(redirect_uri)] if redirect_uri else None,
            grant_types=["authorization_code", "refresh_token"],
            application_type="native" if is_here else "web",
        )
        super().__init__(url, metadata, _Unkept(), client_metadata_url=document)
        self._ask, self._given, self._more, self._visit = ask, given, more, cast("Visit | None", None)
        before = granted or Granted()
        self._is_of = given or before.given
        self.context.protocol_version = _REVISION
        self.context.current_tokens, self.context.client_info = before.tokens, before.client
        self.context.oauth_metadata, self.context.protected_resource_metadata = before.metadata, before.resource
        self.context.auth_server_url = before.authorization_server
        if given is not None:
            self.context.client_info = OAuthClientInformationFull(
                client_id=given.client_id, client_secret=secret, redirect_uris=metadata.redirect_uris, issuer=given.issuer
            )
            self._settle_client(given)
        Granted(client=self.context.client_info).remember()
        self._initialized = True

    @property
    def granted(self) -> Granted:
        context = self.context
        granted = Granted(
            tokens=context.current_tokens,
            expires_at=context.token_expiry_time,
            client=context.client_info,
            metadata=context.oauth_metadata,
            resource=context.protected_resource_metadata,
            authorization_server=context.auth_server_url,
            given=self._is_of,
        )
        granted.remember()
        return granted

    async def begun(self, refusal: httpx2.Response) -> Visit | None:
        """Begins a login after a server refused a request. Returns the visit that a browser must make; None if tokens came without one."""
        asked = httpx2.Request("POST", self.context.server_url, headers={MCP_PROTOCOL_VERSION_HEADER: _REVISION})
        try:
            async with aclosing(self.async_auth_flow(asked)) as flow:
                await anext(flow)
                request = await flow.asend(refusal)
                while request is not asked and self._visit is None:
                    request = await flow.asend(await self._answer(request))
        except (OAuthFlowError, ValueError) as error:
            raise _failed(error) from None
        return self._visit

    async def returned(self, visit: Visit, code: str, iss: str | None) -> None:
        """Gets tokens for the code with which the browser came back."""
        self.context.client_metadata.scope = visit.scope
        remember_given(code)
        try:
            validate_authorization_response_iss(iss, self.context.oauth_metadata)
            request = await self._exchange_token_authorization_code(code, visit.verifier)
            await self._handle_token_response(await self._answer(request))
        except (OAuthFlowError, ValueError) as error:
            raise _failed(error) from None

    async def renewed(self) -> None:
        """Gets a new token for one that has expired."""
        try:
            if self._is_for_itself:
                self.context.client_metadata.scope = self.context.current_tokens.scope if self.context.current_tokens else None
                await self._handle_token_response(await self._answer(await self._perform_authorization()))
                return
            response = await self._answer(await self._refresh_token())
            # RFC 6749, 5.2. Any other status may come from a gateway.
            if response.status_code in (_REFUSED, _UNAUTHORIZED):
                raise login_required(f"The authorization server does not renew the token any more ({response.status_code}).")
            if not await self._handle_refresh_response(response):
                raise NotSent(ErrorType.UNAVAILABLE, f"The authorization server could not renew the token ({response.status_code}).")
        except (OAuthFlowError, ValueError) as error:
            raise _failed(error) from None

    @property
    def can_renew(self) -> bool:
        return self.context.can_refresh_token() or (self._is_for_itself and self.context.oauth_metadata is not None)

    @property
    def _is_for_itself(self) -> bool:
        return self._given is not None and self._given.grant is McpGrant.CLIENT_CREDENTIALS

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        # After a redirect, the body of a request is a stream.
        if b"grant_type=" not in await request.aread():
            return await self._ask(request)
        # Without this, some servers answer with a form.
        request.headers["Accept"] = "application/json"
        response = await self._ask(request)
        if response.status_code in (_OK, _REFUSED) and (error := _error_in(response.content)):
            # Servers use both statuses for both kinds of errors.
            response.status_code = _AWAY if error in _LATER else _REFUSED
        if response.status_code in (200, 201):
            _require_token(response.content)
        elif self._is_for_itself and _REFUSED <= response.status_code < _BROKEN and response.status_code not in _BUSY:
            message = f"The authorization server refuses the client of `oauth`: {response.status_code} {response.text[:_TOLD]}"
            raise NotSent(ErrorType.DEPENDENCY_ERROR, message, {"field": "oauth", "missing": "login"})
        return response

    def _select_authorization_server(self, advertised: list[str]) -> str:
        wanted = self._given.issuer if self._given else None
        return next((one for one in advertised if wanted and issuers_match(one, wanted)), advertised[0])

    def _expected_issuer(self) -> str:
        issuer, wanted = super()._expected_issuer(), self._given.issuer if self._given else None
        if wanted is not None and not issuers_match(issuer, wanted):
            message = f"The server leads to the authorization server {issuer}, and `issuer` of `oauth` is {wanted}."
            raise NotSent(ErrorType.DEPENDENCY_ERROR, message, {"field": "oauth", "missing": "login"})
        return issuer

    async def _perform_authorization(self) -> httpx2.Request:
        """The request for a token, or the request that a browser must make."""
        context = self.context
        if self._given is not None:
            self._settle_client(self._given)
        if self._more:
            context.client_metadata.scope = union_scopes(context.client_metadata.scope, self._more)
        if self._is_for_itself:
            return self._exchange_client_credentials()
        self._visit = self._made_visit()
        return httpx2.Request("GET", self._visit.url)

    def _made_visit(self) -> Visit:
        """Raises OAuthFlowError, NotSent."""
        context, metadata = self.context, self.context.oauth_metadata
        if context.client_info is None or context.client_metadata.redirect_uris is None:
            raise OAuthFlowError("There is no client to log in with")
        # Servers of 2025-03-26 use the default path.
        by_default = f"{context.get_authorization_base_url(context.server_url)}/authorize"
        endpoint = httpx2.URL(str(metadata.authorization_endpoint) if metadata else by_default)
        if not is_confidential(endpoint.scheme, endpoint.host) or endpoint.userinfo:
            # People may take a user name for the host.
            message = f"The login leads a browser to {endpoint.scheme}://{endpoint.host}: only https:// without a user name is taken."
            raise NotSent(ErrorType.SECURITY_ERROR, message)
        pkce, state, scope = PKCEParameters.generate(), secrets.token_urlsafe(32), context.client_metadata.scope
        redirect_uri = str(context.client_metadata.redirect_uris[0])
        asked = {
            "response_type": "code",
            "client_id": context.client_info.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": pkce.code_challenge,
            "code_challenge_method": "S256",
        }
        if context.should_include_resource_param(context.protocol_version):
            asked["resource"] = context.get_resource_url()
        if scope:
            asked["scope"] = scope
        if scope and "offline_access" in scope.split():
            # OpenID Connect Core 1.0, 11.
            asked["prompt"] = "consent"
        url = str(endpoint.copy_merge_params(asked))
        return Visit(url=url, state=state, verifier=pkce.code_verifier, redirect_uri=redirect_uri, scope=scope, granted=self.granted)

    def _exchange_client_credentials(self) -> httpx2.Request:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        data, headers = self.context.prepare_token_auth({"grant_type": "client_credentials"}, headers)
        if self.context.should_include_resource_param(self.context.protocol_version):
            data["resource"] = self.context.get_resource_url()
        if self.context.client_metadata.scope:
            data["scope"] = self.context.client_metadata.scope
        return httpx2.Request("POST", self._get_token_endpoint(), data=data, headers=headers)

    def _settle_client(self, given: McpOAuth) -> None:
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client is None:
            raise OAuthFlowError("The server leads to another authorization server than before")
        taken = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ["client_secret_basic"]
        way = "client_secret_post" if "client_secret_basic" not in taken and "client_secret_post" in taken else "client_secret_basic"
        client.token_endpoint_auth_method = way if client.client_secret else "none"
        if given.scopes:
            self.context.client_metadata.scope = " ".join(given.scopes)


class _Unkept:
    """The SDK's storage, which stores nothing: callers keep the flow's `granted`."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None: ...

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None: ...


def _error_in(body: bytes) -> str | None:
    """The error of a token endpoint's answer; None if it has a token or no error."""
    try:
        told: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return str(told["error"]) if isinstance(told, dict) and "error" in told and "access_token" not in told else None


def _require_token(body: bytes) -> None:
    """Raises OAuthTokenError for an answer without a usable token. The SDK's own message would quote the answer."""
    try:
        told = OAuthToken.model_validate_json(body)
    except ValidationError:
        told = OAuthToken(access_token="")
    token = told.access_token
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise OAuthTokenError("The token endpoint answered without a valid bearer token")
    if abs(told.expires_in or 0) > _LONGEST_S:
        raise OAuthTokenError("The token endpoint answered with a token whose `expires_in` is no time")


def _failed(error: Exception) -> NotSent:
    """Quotes only the first line of the error: the rest may be a server's text."""
    first = next(iter(str(error).splitlines()), "") or type(error).__name__
    return NotSent(ErrorType.UNAVAILABLE, f"The login did not succeed: {first[:_TOLD]}.")
