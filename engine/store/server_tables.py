"""The table of MCP servers."""

from sqlalchemy import Column, String, Table, Text

from engine.store.tables import METADATA

mcp_servers = Table(
    "mcp_servers",
    METADATA,
    Column("name", String(64), primary_key=True),
    # An `McpServer`.
    Column("document", Text, nullable=False),
    # An `McpSource` of no tool: what is started or asked, with the files of one whose packages are locked. Empty until it was reached.
    Column("source", Text),
)
