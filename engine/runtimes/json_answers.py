"""Reading the JSON that programs answer with."""

import math
import re

import pydantic_core
from pydantic import JsonValue

from toolagent.core.texts import well_formed_json

__all__ = ["read_json"]

_MAY_OVERFLOW = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")
"""Nearly no answer has such a number, so nearly none is walked through."""


def read_json(text: bytes) -> JsonValue:
    """With U+FFFD for halves of surrogate pairs, which programs leave that cut a text in the middle of a character.

    Raises ValueError: no JSON, or a number that no double holds, which the parser takes for infinite.
    """
    value = _parsed(text)
    if _MAY_OVERFLOW.search(text) and not _is_finite(value):
        raise ValueError("it holds a number that is too large for a JSON number of double precision (about 1.8e308)")
    return value


def _parsed(text: bytes) -> JsonValue:
    # What the parser gives is plain JSON; a check of it would copy a large answer once more.
    try:
        value: JsonValue = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError:
        mended = well_formed_json(text)
        if mended is text:
            raise
        value = pydantic_core.from_json(mended, allow_inf_nan=False)
    return value


def _is_finite(value: JsonValue) -> bool:
    """Whether no number in it became infinite when it was read."""
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
