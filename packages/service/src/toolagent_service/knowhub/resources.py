"""KnowHub's resources, as far as they are about tools."""

from pydantic import JsonValue

_LISTS = ("resources", "items", "data", "results")
"""Where the list stands, when it is not the whole answer."""


def listed_resources(document: JsonValue) -> tuple[dict[str, JsonValue], ...] | None:
    """Those that `GET /api/resource` answers with: a list, or an object with one; None for anything else."""
    if isinstance(document, dict):
        document = next((document[name] for name in _LISTS if isinstance(document.get(name), list)), None)
    if not isinstance(document, list):
        return None
    return tuple(one for one in document if isinstance(one, dict) and isinstance(one.get("id"), str))
