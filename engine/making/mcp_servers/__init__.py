"""MCP servers of repositories: started in the sandbox, asked what they offer, and a tool for each of their tools."""
