"""What callers of MCP pay: calls in both revisions, the tools of another server, pages of tools, sessions."""
