"""One name for a tool that every vendor takes: letters, digits, `_` and `-`, at most 64.

The name follows from the id alone, except where two ids would share one. Give `vendor_names` all tools there are, not only those listed.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["LONGEST_NAME", "tool_id_of", "vendor_names"]

LONGEST_NAME = 64
_DIGITS = 8


def vendor_names(tool_ids: Iterable[str]) -> dict[str, str]:
    """Tool ids by their names. `:` becomes `__`; what is too long or not unique is cut and ends with digits of its hash.

    Of ids that share a name, one that is this name already keeps it.
    """
    ids = sorted(set(tool_ids))
    direct = {tool_id: tool_id.replace(":", "__") for tool_id in ids}
    wanted = Counter(direct.values())
    kept = {tool_id for tool_id, name in direct.items() if len(name) <= LONGEST_NAME and (wanted[name] == 1 or name == tool_id)}
    names = {direct[tool_id]: tool_id for tool_id in ids if tool_id in kept}
    for tool_id in ids:
        if tool_id not in kept:
            names[_hashed(tool_id, direct[tool_id], names)] = tool_id
    return names


def tool_id_of(name: str, names: Mapping[str, str]) -> str | None:
    """The tool that has this name; None for a name that nobody was given."""
    return names.get(name)


def _hashed(tool_id: str, direct: str, taken: Mapping[str, str]) -> str:
    """With more digits while another tool is called exactly so."""
    digest, digits = hashlib.sha256(tool_id.encode()).hexdigest(), _DIGITS
    while (name := f"{direct[: LONGEST_NAME - 1 - digits]}_{digest[:digits]}") in taken:
        digits += 1
    return name
