"""The rules of `*.tool.json`, and of dependencies between tools."""
