"""The tables of MCP clients."""

from sqlalchemy import Column, Index, String, Table, Text

from engine.store.tables import METADATA

_TIME = String(32)

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
