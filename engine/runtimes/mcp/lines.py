"""Reads messages from a server's stdout, robustly and in bounded memory."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from mcp_types import JSONRPCError, JSONRPCMessage, RequestId, jsonrpc_message_adapter
from mcp_types.jsonrpc import ErrorData
from pydantic import ValidationError

from engine.runtimes.http.json_answers import TooMuchError, read_json
from engine.runtimes.mcp.codes import TOO_LARGE

_ENDS = 512
"""Of a line that is too long, so much of its beginning and of its end is kept: there its id stands."""

_VALUE = 2
"""What a value counts, so that many small ones are soon too many."""

_ID_FIRST = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(frozen=True, slots=True)
class Line:
    """One line. Of one that is too long, `text` is its beginning and its end, and `size` its full size."""

    text: bytes
    size: int

    @property
    def is_whole(self) -> bool:
        return len(self.text) == self.size


class Lines:
    """Splits what comes into lines of at most `most` bytes; what is longer is not held."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self._end = b""
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Line]:
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._take(piece)
            line = Line(bytes(self._kept) + self._end, self._size)
            self._kept, self._end, self._size = bytearray(), b"", 0
            if line.text.strip():
                yield line
        self._take(rest)

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most:
            self._kept += piece
            return
        # The buffer is freed at once: only the ends of the line are used.
        lacking = max(0, _ENDS - len(self._kept))
        self._kept += piece[:lacking]
        self._end = (self._end + bytes(self._kept[_ENDS:][-_ENDS:]) + piece[lacking:][-_ENDS:])[-_ENDS:]
        del self._kept[_ENDS:]


def is_larger(value: object, most: int) -> bool:
    """Whether a JSON value has more than so many characters in its texts, each value counted as some. Does not go through all of it."""
    left, seen = [value], 0
    while left and seen <= most:
        seen += _VALUE
        one = left.pop()
        if isinstance(one, str):
            seen += len(one)
        elif isinstance(one, dict):
            members = cast("dict[str, object]", one)
            seen += sum(map(len, members))
            left.extend(members.values())
        elif isinstance(one, list):
            left.extend(cast("list[object]", one))
    return seen > most


def message_of(line: Line, max_values: int) -> JSONRPCMessage | None:
    """None for what is no message. An answer that is too large becomes the error that says so."""
    if not line.is_whole:
        return _refused(line.text, f"it is {line.size} bytes of JSON (TOOL_AGENT_MAX_RESULT_BYTES)")
    try:
        return jsonrpc_message_adapter.validate_python(read_json(line.text, max_values), by_name=False)
    except TooMuchError as error:
        return _refused(line.text, str(error))
    except (ValueError, ValidationError):
        return None


def _refused(text: bytes, why: str) -> JSONRPCMessage | None:
    answered = _id_of(text)
    if answered is None:
        return None
    return JSONRPCError(jsonrpc="2.0", id=answered, error=ErrorData(code=TOO_LARGE, message=f"The tool's answer is not taken: {why}."))


def _id_of(text: bytes) -> RequestId | None:
    found = _ID_FIRST.search(text[:_ENDS]) or _ID_LAST.search(text[-_ENDS:])
    return int(found[1]) if found else None
