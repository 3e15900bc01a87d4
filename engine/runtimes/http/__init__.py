"""One request to a tool over HTTP, and what comes of it."""
