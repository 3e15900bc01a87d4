"""Names of tools that every vendor accepts: letters, digits, `_` and `-`, at most 64.

The name follows from the id alone, unless two ids would share one. Give `vendor_names` all existing tools, not only the listed ones.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["LONGEST_NAME", "can_be_name", "tool_id_of", "vendor_names"]

LONGEST_NAME = 64
_DIGITS = 8


def vendor_names(tool_ids: Iterable[str]) -> dict[str, str]:
    """Tool ids by their names. `:` becomes `__`. A name that is too long or not unique is cut, and ends with digits of a hash.

    A name that two ids would have is given to neither, because earlier users of the name may mean either.
    """
    digits = dict.fromkeys(sorted(tool_ids), 0)
    refused = set[str]()
    while True:
        names = {tool_id: _name(tool_id, count) for tool_id, count in digits.items()}
        wanted = Counter(names.values())
        refused |= {name for name, count in wanted.items() if count > 1 or len(name) > LONGEST_NAME}
        again = [tool_id for tool_id, name in names.items() if name in refused]
        if not again:
            return {name: tool_id for tool_id, name in names.items()}
        for tool_id in again:
            digits[tool_id] = max(_DIGITS, digits[tool_id] + 1)


def tool_id_of(name: str, names: Mapping[str, str]) -> str | None:
    """The tool that has this name; None for a name that no tool has."""
    return names.get(name)


def can_be_name(tool_id: str) -> bool:
    """Whether an id has the form of a name, so that it may be the name of another tool."""
    return ":" not in tool_id and len(tool_id) <= LONGEST_NAME


def _name(tool_id: str, digits: int) -> str:
    direct = tool_id.replace(":", "__")
    # With all 63 digits it begins with `_`, as no id does.
    return f"{direct[: LONGEST_NAME - 1 - digits]}_{hashlib.sha256(tool_id.encode()).hexdigest()[:digits]}" if digits else direct
