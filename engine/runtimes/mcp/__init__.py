"""Tools of MCP servers: started in the sandbox and spoken to on their stdin and stdout, or reached over HTTP."""
