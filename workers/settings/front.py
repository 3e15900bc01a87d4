"""The front door: where it listens, how much it takes; and the log."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from toolagent.core.calls.json_size import MAX_STARTED_VALUES
from workers.settings.part import HttpAddress, Names, Number, Part, Port, Seconds


class FrontSettings(Part):
    """The front door."""

    fastapi_host: str = "127.0.0.1"
    """Address to listen on; one that is not loopback needs `TOOL_AGENT_API_KEY`."""

    fastapi_port: Port = 8001
    """Port of the HTTP API."""

    public_url: HttpAddress | None = None
    """Where browsers reach the HTTP API, such as `https://tools.example`; unset: where the request came to that begins a login."""

    api_key: Annotated[SecretStr, Field(min_length=1)] | None = None
    """Bearer token that every request must carry but `/health` and the return of logins, `/oauth/callback`."""

    allowed_hosts: Names = ("127.0.0.1", "localhost", "[::1]")
    """Host names that requests may use when there is no API key; comma-separated."""


class McpSettings(Part):
    """The MCP server."""

    mcp_port: Port | None = None
    """Port of the MCP server, at `/mcp`; unset: that of the HTTP API."""

    mcp_session_idle_s: Seconds = 86_400.0
    """Seconds after its last request at which a session of an MCP client is closed."""

    mcp_task_after_s: Annotated[float, Field(ge=0, le=86_400)] = 10.0
    """Seconds after which a call becomes a task, where its MCP client takes tasks and the tool does not forbid it."""


class LimitSettings(Part):
    """Sizes."""

    max_params_bytes: Annotated[int, Field(ge=1024, le=1_310_720)] = 1_048_576
    """Bytes of JSON the parameters of a call may have."""

    max_values: Annotated[int, Field(ge=1024, le=MAX_STARTED_VALUES)] = 110_000
    """Values (numbers, texts, lists, objects, names in objects …) a request body or the parameters may hold."""

    max_file_bytes: Number = 64 * 1_048_576
    """Bytes a file may have."""

    max_result_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824)] = 64 * 1_048_576
    """Bytes of JSON a tool's answer may have."""

    max_result_values: Annotated[int, Field(ge=1024, le=16_777_216)] = 250_000
    """Values (numbers, texts, lists, objects, names in objects …) a tool's answer may hold."""

    inline_result_bytes: Annotated[int, Field(ge=1024, le=1_048_576)] = 256 * 1024
    """Bytes of JSON up to which an answer is in the result; larger ones become files."""


class LogSettings(Part):
    """The log."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged: `debug`, `info`, `warning` or `error`."""

    log_format: Literal["console", "json"] | None = None
    """`console` or `json`; unset: `console` at a terminal, otherwise `json`."""
