"""A session of an MCP client, as it is kept between its requests."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from toolagent.contracts.contract import Contract


class McpSession(Contract):
    """What the handshake of an MCP client said, and what it asked for since. `client` is the params of its `initialize`."""

    session_id: str
    protocol_version: str
    client: dict[str, JsonValue] = {}
    log_level: str | None = None
    subscriptions: Annotated[tuple[str, ...], Field(max_length=1000)] = ()
    """URIs of resources whose changes it wants to hear of."""
    tasks: Annotated[tuple[str, ...], Field(max_length=500)] = ()
    """Ids of the calls that it made as tasks, the latest 500."""
    opened_at: datetime

    @property
    def capabilities(self) -> dict[str, JsonValue]:
        told = self.client.get("capabilities")
        return told if isinstance(told, dict) else {}
