"""Names, typed stubs, the Temporal plugin and the client."""
