"""OAuth for servers that want a login: the requests that it takes, its steps, and what a connection needs of it."""
