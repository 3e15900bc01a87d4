"""Telling those who asked for it, by HTTP, that something has ended."""
