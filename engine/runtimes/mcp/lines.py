"""Reads messages from a server's stdout in bounded memory; ignores other output."""

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
"""Bytes that are kept of the beginning and of the end of a line that is too long. The id is in one of them."""

_VALUE = 2
"""The size that each value adds to its characters, so that many small values count too."""

_ID_FIRST = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(frozen=True, slots=True)
class Line:
    """One line. If it is too long, `text` holds only its beginning and end; `size` is always its full size."""

    text: bytes
    size: int

    @property
    def is_whole(self) -> bool:
        return len(self.text) == self.size


class Lines:
    """Splits output into lines of at most `most` bytes, and drops the middle of longer ones."""

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
        # Frees the buffer: only the ends of the line are used.
        lacking = max(0, _ENDS - len(self._kept))
        self._kept += piece[:lacking]
        self._end = (self._end + bytes(self._kept[_ENDS:][-_ENDS:]) + piece[lacking:][-_ENDS:])[-_ENDS:]
        del self._kept[_ENDS:]


def is_larger(value: object, most: int) -> bool:
    """Whether a JSON value is larger than `most`: the characters of its texts, and some for each value. Stops when that is clear."""
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
    """The message of a line; None if it is not one. An answer that is too large becomes an error."""
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
