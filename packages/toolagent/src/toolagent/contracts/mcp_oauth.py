"""Credentials for the login at an MCP server."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ShortText

__all__ = ["McpGrant", "McpOAuth"]


class McpGrant(StrEnum):
    """How a token is requested."""

    AUTHORIZATION_CODE = "authorization_code"
    """A person logs in, in a browser."""
    CLIENT_CREDENTIALS = "client_credentials"
    """The service logs in as itself."""


class McpOAuth(Contract):
    """A client that is registered at the authorization server of an MCP server. Without one, the service registers itself."""

    client_id: Annotated[str, Field(min_length=1, max_length=2_000)]
    client_secret: Annotated[str | None, Field(min_length=1, max_length=8_000)] = None
    """The name of a secret, `secret:NAME`; null: the client has none."""
    scopes: Annotated[tuple[ShortText, ...], Field(max_length=50, strict=False)] = ()
    """Empty: the scopes that the server asks for."""
    grant: Annotated[McpGrant, Field(strict=False)] = McpGrant.AUTHORIZATION_CODE
    issuer: Annotated[str | None, Field(max_length=2_000)] = None
    """The authorization server that issued the credentials. No other gets them. Null: any that the server names."""
