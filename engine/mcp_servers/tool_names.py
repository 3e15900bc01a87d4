"""What the tools of a server are called here."""

import hashlib
import re
from collections.abc import Sequence

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9_-]+")
_LONGEST = 128
_HASH = 8


def tool_ids_of(prefix: str, names: Sequence[str]) -> dict[str, str]:
    """`<prefix>_<tool>` by the server's own names, which are unique; without a prefix, what the name makes.

    Of names that make the same id, the one that is that id keeps it. The others end with a digest of the name, so that what else the
    server lists does not matter.
    """
    made = {name: _made(prefix, name) for name in names}
    plain = {name for name in names if _whole(prefix, name) == made[name]}
    counts: dict[str, int] = {}
    for name in names:
        counts[made[name]] = counts.get(made[name], 0) + 1
    return {name: one if name in plain or counts[one] == 1 else _with_digest(one, name) for name, one in made.items()}


def _made(prefix: str, name: str) -> str:
    word = _NOT_IN_AN_ID.sub("_", _HUMP.sub("_", name).lower()).strip("_-")
    if not word:
        return _with_digest(_whole(prefix, "tool"), name)
    whole = _whole(prefix, word if prefix or word[0].isalpha() else f"t_{word}")
    return whole if len(whole) <= _LONGEST else _with_digest(whole, name)


def _whole(prefix: str, word: str) -> str:
    return f"{prefix}_{word}" if prefix else word


def _with_digest(tool_id: str, name: str) -> str:
    return f"{tool_id[: _LONGEST - _HASH - 1]}_{hashlib.sha256(name.encode()).hexdigest()[:_HASH]}"
