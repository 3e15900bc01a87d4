"""The tables of MCP servers and of MCP clients."""

from sqlalchemy import Column, Index, Integer, String, Table, Text

from engine.store.tables import METADATA, key, required

_TIME = String(32)

mcp_servers = Table(
    "mcp_servers",
    METADATA,
    key("name", String(64)),
    # An `McpServer`.
    required("document", Text),
    # An `McpSource` without a tool: what is started or asked, with the locks of its packages. NULL before the first success.
    Column("source", Text),
)

mcp_logins = Table(
    "mcp_logins",
    METADATA,
    key("name", String(64)),
    # The server's URL. Tokens are sent to no other.
    required("url", Text),
    # Grows with each change of `sealed`.
    required("number", Integer),
    # Tokens and client, encrypted with a secret of the installation.
    Column("sealed", Text),
    # Since when a person has to log in.
    Column("required_at", _TIME),
    # Further scopes that the server asked for.
    Column("scope", Text),
    # Until then, one process renews the tokens.
    Column("leased_until", _TIME),
    # The login that waits for its browser.
    Column("state", String(64)),
    Column("login_url", Text),
    Column("login_until", _TIME),
    # Encrypted: what checks the browser's return.
    Column("visit", Text),
    Index("ix_mcp_logins_state", "state"),
)

mcp_sessions = Table(
    "mcp_sessions",
    METADATA,
    key("session_id", String(64)),
    # An `McpSession`.
    required("document", Text),
    required("opened_at", _TIME),
    required("seen_at", _TIME),
    Index("ix_mcp_sessions_seen_at", "seen_at"),
)

mcp_requests = Table(
    "mcp_requests",
    METADATA,
    key("session_id", String(64)),
    # As JSON, because 1 and "1" are different ids.
    key("request_id", String(200)),
    required("call_id", String(100)),
)
