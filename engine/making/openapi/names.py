"""Names for the tools of operations: unique, fit for an id, and stable for the same document."""

import hashlib
import re
from collections.abc import Sequence

from engine.making.openapi.operations import Operation

_NOT_A_WORD = re.compile(r"\W", re.ASCII)
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9]+")
_LONGEST_ID = 128
_HASH = 8
_LONGEST_WORD = 100


def operation_names(operations: Sequence[Operation]) -> tuple[str, ...]:
    """Names of lower case letters, digits and `_`: from the operation id if it is unique, else from method and path."""
    short = [plain_word(_own_name(one))[:_LONGEST_WORD] or _by_path(one) for one in operations]
    names = [name if short.count(name) == 1 else _by_path(one) for one, name in zip(operations, short, strict=True)]
    # Paths that differ only in punctuation give the same name.
    return tuple(name if names.count(name) == 1 else f"{name}_{_digest(one.named)}" for one, name in zip(operations, names, strict=True))


def tool_id_of(tool_name: str, operation: str) -> str:
    whole = f"{tool_name}_{operation}"
    return whole if len(whole) <= _LONGEST_ID else f"{whole[: _LONGEST_ID - _HASH - 1]}_{_digest(whole)}"


def plain_word(text: str) -> str:
    """The text in lower case letters, digits and `_`; `camelCase` becomes `camel_case`."""
    return _NOT_IN_AN_ID.sub("_", HUMP.sub("_", text).lower()).strip("_")


def _own_name(operation: Operation) -> str:
    """The operation id without the path and method that FastAPI appends."""
    appended = f"{_NOT_A_WORD.sub('_', operation.path)}_{operation.method.lower()}"
    return operation.operation_id.removesuffix(appended) or operation.operation_id


def _by_path(operation: Operation) -> str:
    return plain_word(f"{operation.method}_{operation.path}")[:_LONGEST_WORD]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH]
