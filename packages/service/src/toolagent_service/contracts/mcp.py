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
    subscriptions: Annotated[
        tuple[str, ...], Field(max_length=1000, description="URIs of resources whose changes it wants to hear of.")
    ] = ()
    tasks: Annotated[tuple[str, ...], Field(max_length=500, description="Ids of the calls that it made as tasks, the latest 500.")] = ()
    opened_at: datetime

    @property
    def client_name(self) -> str:
        """As it says; empty where it does not."""
        info = self.client.get("clientInfo")
        name = info.get("name") if isinstance(info, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def capabilities(self) -> dict[str, JsonValue]:
        told = self.client.get("capabilities")
        return told if isinstance(told, dict) else {}
