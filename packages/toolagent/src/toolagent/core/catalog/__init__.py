"""The rules of `*.tool.json`, and of what depends on what."""
