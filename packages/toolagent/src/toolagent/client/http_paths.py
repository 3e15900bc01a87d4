"""Identifiers as parts of a URL."""

from urllib.parse import quote

__all__ = ["segment"]


def segment(identifier: str) -> str:
    """One path segment; dots alone would walk up the path."""
    return quote(identifier, safe=":") if identifier.strip(".") else quote(identifier.replace(".", "%2E"))
