"""Repositories that nobody has vouched for: their addresses, clones, files, and what is kept of them."""
