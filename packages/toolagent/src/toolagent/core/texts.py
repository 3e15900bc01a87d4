"""Makes untrusted texts well-formed, so that they can be stored and sent, and shortens long ones."""

import json
import re
from typing import TypeVar

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

__all__ = ["json_bytes", "shortened", "well_formed", "well_formed_contract", "well_formed_json", "well_formed_value"]

C = TypeVar("C", bound=BaseModel)

_UNFIT = re.compile("[\0\ud800-\udfff]")
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)")
"""Escape sequences in JSON. The group matches a lone surrogate."""
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""Matches surrogates, also in pairs: a quick test before the slower pattern."""
_REPLACED = b"\\ufffd"


def shortened(text: str, most: int) -> str:
    """The text, cut to `most` characters and `…`."""
    return text if len(text) <= most else f"{text[:most]}…"


def well_formed(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which UTF-8 cannot hold, and for NUL, which PostgreSQL cannot hold."""
    # Nearly every line is printable. Both checks run at the speed of C.
    return text if text.isprintable() else _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def well_formed_json(text: bytes) -> bytes:
    """A JSON text without lone surrogates. `\\u0000` stays, because it is stored as JSON."""
    return _ESCAPES.sub(lambda found: _REPLACED if found.group(1) else found.group(), text) if _HALF.search(text) else text


def well_formed_value(value: JsonValue) -> JsonValue:
    """As `well_formed_json`. If two names of an object become equal, the later one stays."""
    try:
        to_json(value)
    except PydanticSerializationError:
        mended: JsonValue = from_json(json_bytes(value))
        return mended
    return value


def well_formed_contract(value: C) -> C:
    """As `well_formed_value`, for all fields of a pydantic model."""
    try:
        to_json(value)
    except PydanticSerializationError:
        return type(value).model_validate_json(json_bytes(value))
    return value


def json_bytes(value: object) -> bytes:
    """JSON of a value that pydantic cannot write because of lone surrogates. Raises ValueError, TypeError."""
    return well_formed_json(json.dumps(value, default=_plain, ensure_ascii=True, separators=(",", ":")).encode())


def _plain(value: object) -> object:
    return value.model_dump() if isinstance(value, BaseModel) else to_jsonable_python(value)
