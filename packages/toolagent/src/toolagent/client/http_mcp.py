"""MCP servers over HTTP."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from toolagent.client.http_answers import parsed
from toolagent.client.http_paths import segment
from toolagent.client.http_requests import Requests
from toolagent.contracts.mcp_oauth import McpOAuth
from toolagent.contracts.mcp_servers import McpServer, McpServers, RemovedMcpServer

__all__ = ["McpServerRequests"]


class McpServerRequests(Requests):
    """The methods of `ToolAgentHttp` for MCP servers. They raise as its other methods do."""

    def mcp_servers(self) -> McpServers:
        return parsed(McpServers, self._ask("GET", "/mcp_servers"))

    def mcp_server(self, name: str) -> McpServer:
        return parsed(McpServer, self._ask("GET", f"/mcp_servers/{segment(name)}"))

    def add_mcp_server(
        self,
        name: str,
        *,
        url: str | None = None,
        command: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        oauth: McpOAuth | None = None,
        prefix: str | None = None,
        trusted: bool = False,
        allow_hosts: Sequence[str] = (),
        allow_read: Sequence[str] = (),
        allow_write: Sequence[str] = (),
    ) -> McpServer:
        """Start the server, or go to its URL, and take its tools in; where it wants a login, `login_url` is to be opened in a browser."""
        told: dict[str, JsonValue] = {"url": url, "command": command, "args": [*args], "env": {**(env or {})}}
        told |= {"headers": {**(headers or {})}, "prefix": prefix, "trusted": trusted, "allow_hosts": [*allow_hosts]}
        told |= {"oauth": oauth.model_dump(mode="json", exclude_defaults=True) if oauth is not None else None}
        told |= {"allow_read": [*allow_read], "allow_write": [*allow_write]}
        body: dict[str, JsonValue] = {"name": name, **{field: value for field, value in told.items() if value or value == ""}}
        return parsed(McpServer, self._ask("POST", "/mcp_servers", body, unbounded=True))

    def refresh_mcp_server(self, name: str) -> McpServer:
        """Ask it again; `error` says where that failed."""
        return parsed(McpServer, self._ask("POST", f"/mcp_servers/{segment(name)}/refresh", unbounded=True))

    def log_in_at_mcp_server(self, name: str) -> McpServer:
        """Begin a login: `login_url` of the answer is to be opened in a browser."""
        return parsed(McpServer, self._ask("POST", f"/mcp_servers/{segment(name)}/login", unbounded=True))

    def remove_mcp_server(self, name: str) -> RemovedMcpServer:
        return parsed(RemovedMcpServer, self._ask("DELETE", f"/mcp_servers/{segment(name)}"))
