"""Services elsewhere."""

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import NonEmpty, SecretName
from toolagent.contracts.sources.source import HttpSource, Traits, WithoutUser

__all__ = ["Envelope", "RemoteSource"]


class Envelope(Contract):
    """The wrapping of parameters and result, for a path that serves many tools."""

    params_field: NonEmpty
    """The field of the body with the parameters."""
    fixed: dict[str, JsonValue] = {}
    """Further fields of the body, the same for each call."""
    result_field: NonEmpty
    """The field of the answer with the result."""


class RemoteSource(HttpSource):
    """A service elsewhere, reached over HTTP."""

    type: Literal["remote"] = "remote"
    remote_url: Annotated[str, Field(pattern=r"^https?://[^\s/]"), WithoutUser]
    """Scheme, host and port, with an optional path prefix."""
    remote_path: str = ""
    """Path of the call; empty: `endpoint_path`."""
    remote_api_key: SecretName | None = None
    """The name of a secret, `secret:NAME`; never the key itself."""
    auth_header: str = "Authorization"
    auth_scheme: str = "Bearer"
    """Precedes the key; empty: the key alone is sent."""
    auth_kind: Annotated[
        Literal["key", "basic", "cookie", "client_credentials"],
        Field(
            description="What the secret is: a key; `user:password`, sent in Base64; the value of the cookie `auth_cookie`; or "
            "`client_id:client_secret`, for which `token_url` gives a token."
        ),
    ] = "key"
    auth_cookie: Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{0,100}$")] = ""
    token_url: Annotated[str | None, Field(pattern=r"^https?://[^\s/@]+(/[^\s@]*)?$")] = None
    """The token endpoint of OAuth 2."""
    token_scopes: tuple[str, ...] = ()
    only_public: bool = False
    """Whether it may be reached at public addresses only, as servers named by a repository."""
    table: str | None = None
    """The external tool table of the tool. It may be reached where `TOOL_AGENT_EXTERNAL_TOOLS_ALLOW` allows."""
    envelope: Envelope | None = None
    """Unset: the body is the parameters, and the answer is the result."""

    @property
    def traits(self) -> Traits:
        servers = (self.remote_url, *([self.token_url] if self.token_url else []))
        shown = (self.remote_api_key or "", self.endpoint_path, self.remote_path, self.remote_url)
        return Traits(BackendRuntime.REMOTE, servers=servers, shown=shown, only_public=self.only_public)

    @property
    def remedy(self) -> str:
        remedy = "tell its operator; if it has moved, register the tool with its new address"
        return f"is a service at {self.remote_url}, and its code is not here: {remedy}."

    @model_validator(mode="after")
    def _says_where_tokens_and_cookies_go(self) -> Self:
        if self.auth_kind == "client_credentials" and not self.token_url:
            raise ValueError("`auth_kind: client_credentials` needs a `token_url`")
        if self.auth_kind == "cookie" and not self.auth_cookie:
            raise ValueError("`auth_kind: cookie` needs the cookie's name in `auth_cookie`")
        return self
