"""Tools in the forms of others: of the vendors of models, and of MCP."""
