"""Identifiers and questions as parts of a URL."""

from urllib.parse import quote, urlencode

__all__ = ["query", "segment"]


def segment(identifier: str) -> str:
    """One path segment; dots alone would walk up the path."""
    return quote(identifier, safe=":") if identifier.strip(".") else quote(identifier.replace(".", "%2E"))


def query(**asked: object) -> str:
    """`?` and what is asked for, without what is None; empty where nothing is."""
    told = urlencode({name: value for name, value in asked.items() if value is not None})
    return f"?{told}" if told else ""
