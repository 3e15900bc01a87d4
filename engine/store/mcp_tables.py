"""The tables of MCP servers and of MCP clients."""

from sqlalchemy import Column, Index, Integer, String, Table, Text

from engine.store.tables import METADATA

_TIME = String(32)

mcp_servers = Table(
    "mcp_servers",
    METADATA,
    Column("name", String(64), primary_key=True),
    # An `McpServer`.
    Column("document", Text, nullable=False),
    # An `McpSource` of no tool: what is started or asked, with the files of one whose packages are locked. Empty until it was reached.
    Column("source", Text),
)

mcp_logins = Table(
    "mcp_logins",
    METADATA,
    Column("name", String(64), primary_key=True),
    # The server's: what was given there is shown to no other.
    Column("url", Text, nullable=False),
    # Grows with each change of `sealed`.
    Column("number", Integer, nullable=False),
    # Tokens and client, encrypted with a secret of the installation.
    Column("sealed", Text),
    # A person has to log in since then.
    Column("required_at", _TIME),
    # What the server asked for besides.
    Column("scope", Text),
    # Until then somebody renews it.
    Column("leased_until", _TIME),
    # The login that waits for its browser.
    Column("state", String(64)),
    Column("login_url", Text),
    Column("login_until", _TIME),
    # Encrypted too: what a browser's return is checked with.
    Column("visit", Text),
    Index("ix_mcp_logins_state", "state"),
)

mcp_sessions = Table(
    "mcp_sessions",
    METADATA,
    Column("session_id", String(64), primary_key=True),
    # An `McpSession`.
    Column("document", Text, nullable=False),
    Column("opened_at", _TIME, nullable=False),
    Column("seen_at", _TIME, nullable=False),
    Index("ix_mcp_sessions_seen_at", "seen_at"),
)

mcp_requests = Table(
    "mcp_requests",
    METADATA,
    Column("session_id", String(64), primary_key=True),
    # As JSON: 1 and "1" are two ids.
    Column("request_id", String(200), primary_key=True),
    Column("call_id", String(100), nullable=False),
)
