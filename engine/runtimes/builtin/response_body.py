"""Turns the body of an HTTP response into a JSON value."""

import codecs
from bisect import bisect_right
from typing import Literal

import httpx
from pydantic import JsonValue
from pydantic_core import to_json

from engine.runtimes.http.json_answers import read_json
from engine.runtimes.http.reply import TEXT_CODECS

BodyEncoding = Literal["json", "text", "base64"]
ReadBody = tuple[bytes, bool]
"""The bytes, and whether they are the whole body."""

_BASE64_GROUP = 4
_QUOTES = 2
_PIECE = 64 * 1024


def as_json(response: httpx.Response, body: ReadBody) -> tuple[JsonValue, BodyEncoding]:
    """The value if the body is JSON, else text, else base64."""
    content, is_whole = body
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if is_whole and content and (kind in {"", "application/json"} or kind.endswith("+json")):
        try:
            return read_json(content), "json"
        except ValueError:
            pass  # declared as JSON, but invalid or too large: shown as text or base64
    return as_text(response, body)


def as_text(response: httpx.Response, body: ReadBody) -> tuple[str, BodyEncoding]:
    """The body as text, or in base64 if it is not text."""
    content, is_whole = body
    text = _text(content, response.charset_encoding or "utf-8", is_whole=is_whole)
    if text is None:
        return codecs.encode(content, "base64").decode("ascii").replace("\n", ""), "base64"
    return text, "text"


def shortened(text: str, encoding: BodyEncoding, max_bytes: int) -> str:
    """The longest beginning that takes at most `max_bytes` in JSON, without quotes. Base64 stays decodable."""
    if encoding == "base64":
        return text[: max(0, max_bytes) // _BASE64_GROUP * _BASE64_GROUP]
    # A character takes one to six bytes. Goes piece by piece, because a search over the whole text would encode it many times.
    left = max_bytes
    for begin in range(0, len(text), _PIECE):
        piece = text[begin : begin + _PIECE]
        size = _size(piece)
        if size > left:
            return text[: begin + bisect_right(range(1, len(piece) + 1), left, key=lambda length, piece=piece: _size(piece[:length]))]
        left -= size
    return text


def _size(text: str) -> int:
    return len(to_json(text)) - _QUOTES


def _text(content: bytes, encoding: str, *, is_whole: bool) -> str | None:
    try:
        codec = codecs.lookup(encoding)
        if not codec.name.startswith(TEXT_CODECS):
            return None
        # The last character may be cut in two.
        text = codecs.getincrementaldecoder(codec.name)().decode(content, final=is_whole)
    except (LookupError, UnicodeError):
        return None
    return None if "\0" in text else text
