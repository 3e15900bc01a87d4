"""The HTTP server of a front door."""
