"""Paths, queries and bodies of requests."""

from urllib.parse import quote, urlencode

from pydantic import JsonValue

__all__ = ["given", "path_of", "query"]


def path_of(*segments: str) -> str:
    """The path with these segments. In an identifier, dots alone would walk up the path."""
    return "".join(f"/{quote(one, safe=':') if one.strip('.') else one.replace('.', '%252E')}" for one in segments)


def query(**parameters: object) -> str:
    """`?` and the parameters that are not None; empty if there are none."""
    told = urlencode([(name, value) for name, value in parameters.items() if value is not None])
    return f"?{told}" if told else ""


def given(**fields: JsonValue) -> dict[str, JsonValue]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
