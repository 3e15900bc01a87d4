"""Registered MCP servers: started or reached, asked for their tools, and these kept in the catalog with pinned definitions."""
