"""What the tools of several operations are called: unique, fit for an id, and the same whenever the document is."""

import hashlib
import re
from collections.abc import Sequence

from engine.making.openapi.operations import Operation

_NOT_A_WORD = re.compile(r"\W", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9]+")
_LONGEST_ID = 128
_HASH = 8
_LONGEST_WORD = 100


def operation_names(operations: Sequence[Operation]) -> tuple[str, ...]:
    """Of lower case letters, digits and `_`. By its operation id alone where no other has the same, else by method and path too."""
    short = [plain_word(_own_name(one))[:_LONGEST_WORD] or _by_path(one) for one in operations]
    names = [name if short.count(name) == 1 else _by_path(one) for one, name in zip(operations, short, strict=True)]
    # Paths that differ only in signs read the same.
    return tuple(name if names.count(name) == 1 else f"{name}_{_digest(one.named)}" for one, name in zip(operations, names, strict=True))


def tool_id_of(tool_name: str, operation: str) -> str:
    whole = f"{tool_name}_{operation}"
    return whole if len(whole) <= _LONGEST_ID else f"{whole[: _LONGEST_ID - _HASH - 1]}_{_digest(whole)}"


def plain_word(text: str) -> str:
    """Of lower case letters, digits and `_`, with one of these for each hump."""
    return _NOT_IN_AN_ID.sub("_", _HUMP.sub("_", text).lower()).strip("_")


def _own_name(operation: Operation) -> str:
    """FastAPI writes path and method behind the name of the function."""
    appended = _NOT_A_WORD.sub("_", f"{operation.path}") + f"_{operation.method.lower()}"
    name = operation.operation_id
    return name.removesuffix(appended) or name


def _by_path(operation: Operation) -> str:
    return plain_word(f"{operation.method}_{operation.path}")[:_LONGEST_WORD]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH]
