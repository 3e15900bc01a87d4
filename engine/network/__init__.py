"""Which addresses of a network may be reached, and the way there: what a name resolves to, clients, the proxy of the sandbox."""
