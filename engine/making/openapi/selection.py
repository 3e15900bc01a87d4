"""Selects the operations that become tools: those that the task names.

If there are too many, whole tags.
"""

from collections.abc import Sequence

from engine.making.failures import NOT_NAMED, BuildFailed, LeftOut
from engine.making.openapi.operations import Operation, ReadOperations
from toolagent_service.making.wildcards import chosen, meaningless

_NEAREST = 5
_MOST_TOLD = 20


def wanted(read: ReadOperations, patterns: Sequence[str]) -> tuple[tuple[Operation, ...], tuple[LeftOut, ...]]:
    """The operations that match a pattern, and why the others are left out. Raises BuildFailed if a pattern matches none."""
    for pattern in patterns:
        _require_one(read, pattern)
    yes, no = chosen(read.operations, patterns, _names)
    names = [one.named for one in no] if len(no) <= _MOST_TOLD else [f"{len(no)} operations"]
    return yes, tuple(LeftOut(name, NOT_NAMED) for name in names)


def fitting(operations: Sequence[Operation], most: int, order: Sequence[str] = ()) -> tuple[tuple[Operation, ...], tuple[LeftOut, ...]]:
    """All operations if they are at most `most`; else whole tags that fit, in the document's order. Also the tags that are left out.

    An operation without a tag belongs to the first part of its path.
    """
    if len(operations) <= most:
        return tuple(operations), ()
    by_tag: dict[str, list[Operation]] = {tag: [] for tag in order}
    for one in operations:
        by_tag.setdefault(one.tags[0] if one.tags else _first_part(one.path), []).append(one)
    taken: list[Operation] = []
    left: list[LeftOut] = []
    for tag, own in by_tag.items():
        if len(taken) + len(own) <= most:
            taken += own
        else:
            reason = f"There would be more than {most} tools. Name it in `operations`, by itself or with few others."
            left.append(LeftOut(f"{tag} ({len(own)} operations)", reason))
    return tuple(taken), tuple(left)


def _require_one(read: ReadOperations, pattern: str) -> None:
    told = meaningless(read.operations, [pattern], _names)
    if not told:
        return
    if unfit := chosen(read.left_out, [pattern], lambda one: (one.operation, *one.names))[0]:
        why = " ".join(map(str, unfit[:_NEAREST]))
        raise BuildFailed(f"What `operations` names by {pattern!r} cannot be a tool. {why}")
    raise BuildFailed(f"No operation is meant: {told}")


def _names(one: Operation) -> tuple[str, ...]:
    """Names that a task may use for it."""
    by_tag = one.tags or (_first_part(one.path),)
    return tuple(name for name in (one.operation_id, *by_tag, one.path, one.named) if name)


def _first_part(path: str) -> str:
    return next((part for part in path.split("/") if part and not part.startswith("{")), "/")
