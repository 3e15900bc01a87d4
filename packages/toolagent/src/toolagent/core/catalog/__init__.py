"""Rules of `*.tool.json`, and of dependencies between tools."""
