"""Sessions of MCP clients, as stored between their requests."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from toolagent.contracts.contract import Contract


class McpSession(Contract):
    """The handshake of an MCP client, and its later settings. `client` is the params of its `initialize`."""

    session_id: str
    protocol_version: str
    client: dict[str, JsonValue] = {}
    log_level: str | None = None
    subscriptions: Annotated[tuple[str, ...], Field(max_length=1000)] = ()
    """URIs of the resources whose changes it subscribed to."""
    tasks: Annotated[tuple[str, ...], Field(max_length=500)] = ()
    """Ids of its calls as tasks, the latest 500."""
    opened_at: datetime

    @property
    def capabilities(self) -> dict[str, JsonValue]:
        told = self.client.get("capabilities")
        return told if isinstance(told, dict) else {}
