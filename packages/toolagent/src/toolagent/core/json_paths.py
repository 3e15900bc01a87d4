"""JSON paths as texts: `$.items[0].name`."""

from collections.abc import Iterable

__all__ = ["json_path"]


def json_path(steps: Iterable[str | int], root: str = "$") -> str:
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
