"""The MCP server: the tools of the catalog, for clients that speak MCP, in both revisions."""
