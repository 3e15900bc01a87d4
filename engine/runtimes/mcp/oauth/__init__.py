"""OAuth for servers that want a login: its requests, its steps, and its interface for connections."""
