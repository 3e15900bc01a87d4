"""MCP servers over HTTP."""

from collections.abc import Mapping, Sequence

from toolagent.client.http_paths import given
from toolagent.client.http_requests import Requests
from toolagent.contracts.mcp_oauth import McpOAuth
from toolagent.contracts.mcp_servers import McpServer, McpServers, RemovedMcpServer

__all__ = ["McpServerRequests"]


class McpServerRequests(Requests):
    """The methods of `ToolAgentHttp` for MCP servers. They raise the same errors as its others."""

    def mcp_servers(self) -> McpServers:
        return self._get(McpServers, "mcp_servers")

    def mcp_server(self, name: str) -> McpServer:
        return self._get(McpServer, "mcp_servers", name)

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
        """Register a server, by its URL or the command that starts it, and list its tools. If it requires a login, open `login_url`."""
        body = given(
            name=name,
            url=url,
            command=command,
            args=[*args] or None,
            env={**env} if env else None,
            headers={**headers} if headers else None,
            oauth=oauth and oauth.model_dump(mode="json", exclude_defaults=True),
            prefix=prefix,
            trusted=trusted or None,
            allow_hosts=[*allow_hosts] or None,
            allow_read=[*allow_read] or None,
            allow_write=[*allow_write] or None,
        )
        return self._post(McpServer, "mcp_servers", body=body, unbounded=True)

    def refresh_mcp_server(self, name: str) -> McpServer:
        """List its tools again; `error` says why that failed, if it did."""
        return self._post(McpServer, "mcp_servers", name, "refresh", unbounded=True)

    def log_in_at_mcp_server(self, name: str) -> McpServer:
        """Begin a login: open the `login_url` of the answer in a browser."""
        return self._post(McpServer, "mcp_servers", name, "login", unbounded=True)

    def remove_mcp_server(self, name: str) -> RemovedMcpServer:
        return self._delete(RemovedMcpServer, "mcp_servers", name)
