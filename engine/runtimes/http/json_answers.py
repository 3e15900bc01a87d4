"""Reads the JSON that programs answer with."""

import math
import re

import pydantic_core
from pydantic import JsonValue

from toolagent.core.calls.json_size import Excess, excess_of
from toolagent.core.texts import well_formed_json

MAX_RESULT_VALUES = 250_000
"""The default limit of values in an answer."""

_MAY_OVERFLOW = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")
"""Only answers with such a number are searched for infinite values."""
_PIECE = 1 << 18
_OVERLAP = 320
"""The search goes piece by piece, because it holds the interpreter's lock: for 64 MB at once, a second."""


class TooMuchError(ValueError):
    """The JSON is not parsed: it has too many values, or is nested too deeply."""

    def __init__(self, excess: Excess) -> None:
        setting = " (TOOL_AGENT_MAX_RESULT_VALUES)" if excess.of == "values" else ""
        super().__init__(f"it {excess}{setting}")
        self.excess = excess


def read_json(text: bytes, max_values: int = MAX_RESULT_VALUES) -> JsonValue:
    """The value, with U+FFFD for lone surrogates, which programs leave when they cut a text within a character.

    Raises TooMuchError, and ValueError: not JSON, or a number that does not fit a double, which the parser reads as infinite.
    """
    if (excess := excess_of(text, max_values)) is not None:
        raise TooMuchError(excess)
    value = _parsed(text)
    if any(_MAY_OVERFLOW.search(text, at, at + _PIECE + _OVERLAP) for at in range(0, len(text), _PIECE)) and not _is_finite(value):
        raise ValueError("it holds a number that is too large for a JSON number of double precision (about 1.8e308)")
    return value


def _parsed(text: bytes) -> JsonValue:
    # The parser returns plain JSON; validation would copy a large answer once more.
    try:
        value: JsonValue = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError:
        mended = well_formed_json(text)
        if mended is text:
            raise
        value = pydantic_core.from_json(mended, allow_inf_nan=False)
    return value


def _is_finite(value: JsonValue) -> bool:
    """Whether no number in the value was read as infinite."""
    left: list[JsonValue] = [value]
    while left:
        match left.pop():
            case float(number) if not math.isfinite(number):
                return False
            case dict(inner):
                left.extend(inner.values())
            case list(inner):
                left.extend(inner)
            case _:
                pass
    return True
