"""Registered MCP servers: their tools are listed and kept in the catalog with pinned definitions."""
