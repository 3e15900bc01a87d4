"""Reads the body of an HTTP response within a bound, and says what it is as JSON can.

Compressed bodies are unpacked here, not by httpx: it unpacks a whole chunk at once, which a small bomb makes gigabytes of.
"""

import codecs
import zlib
from bisect import bisect_right
from typing import Literal

import httpx
from pydantic import JsonValue
from pydantic_core import to_json

from engine.runtimes.json_answers import read_json

__all__ = ["ACCEPT_ENCODING", "BodyEncoding", "ReadBody", "as_json", "as_text", "read_body", "shortened"]

ACCEPT_ENCODING = "gzip, deflate"
BodyEncoding = Literal["json", "text", "base64"]
ReadBody = tuple[bytes, bool]
"""The bytes, and whether there were more."""

_BASE64_GROUP = 4
_QUOTES = 2
_TEXT_CODECS = ("utf-8", "utf-16", "utf-32", "ascii", "iso8859", "cp125", "gb", "big5", "shift_jis", "cp932", "euc_", "koi8")


async def read_body(response: httpx.Response, max_bytes: int) -> ReadBody:
    """At most `max_bytes`, unpacked when it is gzip or deflate; any other packing is left as it is."""
    unpack = zlib.decompressobj(wbits=47) if _packing(response) in {"gzip", "x-gzip", "deflate"} else None  # 47: either header
    read = bytearray()
    async for chunk in response.aiter_raw():
        room = max_bytes + 1 - len(read)
        read += chunk[:room] if unpack is None else unpack.decompress(chunk, room)
        if len(read) > max_bytes:
            return bytes(read[:max_bytes]), True
    return bytes(read), False


def as_json(response: httpx.Response, body: ReadBody) -> tuple[JsonValue, BodyEncoding]:
    """Parsed when it is JSON, else text, else base64."""
    content, cut = body
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not cut and content and (kind in {"", "application/json"} or kind.endswith("+json")):
        try:
            return read_json(content), "json"
        except ValueError:
            pass  # it says so, and is not, or holds too much: then it is shown as what it is
    return as_text(response, body)


def as_text(response: httpx.Response, body: ReadBody) -> tuple[str, BodyEncoding]:
    """The text, or base64 of what is no text."""
    content, cut = body
    text = _text(content, response.charset_encoding or "utf-8", cut)
    if text is None:
        return codecs.encode(content, "base64").decode("ascii").replace("\n", ""), "base64"
    return text, "text"


def shortened(text: str, encoding: BodyEncoding, max_bytes: int) -> str:
    """As much of the beginning as needs at most `max_bytes` in JSON, without its quotes; base64 stays readable."""
    if encoding == "base64":
        return text[: max(0, max_bytes) // _BASE64_GROUP * _BASE64_GROUP]
    # A character may need one byte or six: found by halving, which encodes a megabyte some twenty times in some ten milliseconds.
    lengths = range(1, len(text) + 1)
    return text[: bisect_right(lengths, max_bytes, key=lambda length: len(to_json(text[:length])) - _QUOTES)]


def _packing(response: httpx.Response) -> str:
    return response.headers.get("content-encoding", "").strip().lower()


def _text(content: bytes, encoding: str, cut: bool) -> str | None:
    try:
        codec = codecs.lookup(encoding)
        if not codec.name.startswith(_TEXT_CODECS):  # `punycode` and its like take minutes for a megabyte
            return None
        # The last character may have been cut in two.
        text = codecs.getincrementaldecoder(codec.name)().decode(content, final=not cut)
    except (LookupError, UnicodeError):
        return None
    return None if "\0" in text else text
