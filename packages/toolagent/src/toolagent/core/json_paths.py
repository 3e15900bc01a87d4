"""JSON paths as texts (`$.items[0].name`), and local references (`#/$defs/name`)."""

from collections.abc import Iterable

from pydantic import JsonValue

__all__ = ["json_path", "referenced"]


def json_path(steps: Iterable[str | int], root: str = "$") -> str:
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def referenced(document: JsonValue, reference: str) -> JsonValue:
    """The part of the document that a reference names; None if there is none."""
    for step in reference.removeprefix("#/").split("/"):
        document = document.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(document, dict) else None
    return document
