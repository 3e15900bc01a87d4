"""Untrusted repositories: their addresses, clones, files, and what is kept of them."""
