"""Counts values and levels of a JSON text: `[[],[],…]` costs a hundred times as much memory as a string of that length.

It counts on the bytes, before parsing. A name in an object counts as a value, because it costs as much.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from pydantic import JsonValue

__all__ = ["MAX_DEPTH", "MAX_STARTED_VALUES", "Excess", "excess_of", "values_in"]

MAX_DEPTH = 190
"""Levels of lists and objects. Ten less than JSON readers allow, because a value is nested in messages."""

MAX_STARTED_VALUES = 262_144
"""The limit in workflows, which cannot read settings. No setting allows more values in parameters."""

_STEPS = tuple((byte in b"[{") - (byte in b"]}") for byte in range(256))
_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


@dataclass(frozen=True, slots=True)
class Excess:
    """What exceeds a limit, as a sentence without its subject. `at_least`: counting stopped there."""

    of: Literal["values", "levels"]
    number: int
    limit: int
    at_least: bool = False

    @property
    def details(self) -> dict[str, JsonValue]:
        return {"reason": f"too_many_{self.of}", self.of: self.number, "limit": self.limit}

    def __str__(self) -> str:
        if self.of == "levels":
            return f"is {self.number} levels of lists and objects deep; at most {self.limit} are taken"
        number = f"at least {self.number}" if self.at_least else self.number
        return f"holds {number} values (numbers, texts, lists, objects, names in objects …); at most {self.limit} are taken"


def excess_of(text: bytes, max_values: int, max_depth: int = MAX_DEPTH) -> Excess | None:
    """The exceeded limit of a JSON text; None when it may be parsed. Meaningless for a text that is not JSON."""
    openers = text.count(b"[") + text.count(b"{")
    # Each value but the outermost follows a comma, an opener or its name. Nearly every text passes here.
    if text.count(b",") + text.count(b":") + openers < max_values and openers <= max_depth:
        return None
    least = (text.count(b'"') - text.count(b'\\"')) // 2
    if least > max_values:
        return Excess("values", least, max_values, at_least=True)
    bare = _bare(text)
    values = _values(bare)
    if values > max_values:
        return Excess("values", values, max_values)
    depth = max(accumulate(map(_STEPS.__getitem__, bare.translate(None, _ALL_BUT_BRACKETS))), default=0)
    return Excess("levels", depth, max_depth) if depth > max_depth else None


def values_in(text: bytes) -> int:
    """Number of values of a JSON text within the limits."""
    return _values(_bare(text))


def _bare(text: bytes) -> bytes:
    """The text without the contents of strings, and without space."""
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"s".join(plain.split(b'"')[::2]).translate(None, b" \t\r\n")


def _values(bare: bytes) -> int:
    openers = bare.count(b"[") + bare.count(b"{")
    return 1 + bare.count(b",") + bare.count(b":") + openers - bare.count(b"[]") - bare.count(b"{}")
