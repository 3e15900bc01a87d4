"""Reads strict JSON with `//` comments, and finds line and column of every value."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

__all__ = ["CommentedJson", "NotJsonError", "Place", "Step", "parse_commented"]

# An unclosed string extends to the end of its line, and the parser reports it.
_TEXT_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"?+|//[^\n]*')
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[{}\[\],:]')
_SPACE = re.compile(r"[ \t\n\r]*")
_MAX_DEPTH = 100
_DECODER = json.JSONDecoder()
Step = str | int


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a text, counted from 1, in characters."""

    line: int
    column: int


class NotJsonError(ValueError):
    """The text is not JSON, has a name twice, or is too deep."""

    def __init__(self, reason: str, place: Place) -> None:
        super().__init__(reason)
        self.place = place


@dataclass(frozen=True, slots=True)
class CommentedJson:
    """`text` has blanks instead of comments, so places in it are those of the file."""

    value: JsonValue
    text: str

    def place_of(self, path: Sequence[Step]) -> Place:
        """Where the value at a path begins; for a path that leads further, the last existing step."""
        value, at = self.value, _after_space(self.text, 0)
        for step in path:
            match value:
                case dict() if isinstance(step, str) and step in value:
                    at, value = _member(self.text, at, step), value[step]
                case list() if isinstance(step, int) and 0 <= step < len(value):
                    at, value = _item(self.text, at, step), value[step]
                case _:
                    break
        return _place(self.text, at)


def parse_commented(text: str) -> CommentedJson:
    """Raises NotJsonError."""
    text = _without_comments(text)
    try:
        value: JsonValue = json.loads(text, parse_constant=_Constant.of, parse_float=_number)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"Not JSON: {error.msg}.", Place(error.lineno, error.colno)) from error
    except _NotANumberError as error:
        raise NotJsonError(f"Not JSON: {error}", _place(text, max(_outside_of_texts(text).find(error.found), 0))) from error
    except RecursionError as error:
        raise NotJsonError("The JSON is nested too deeply.", Place(1, 1)) from error
    except ValueError as error:
        raise NotJsonError("A number has more than 4300 digits.", Place(1, 1)) from error
    _require_one_of_each(text)
    return CommentedJson(value, text)


class _NotANumberError(Exception):
    def __init__(self, reason: str, found: str) -> None:
        super().__init__(reason)
        self.found = found


class _Constant:
    @staticmethod
    def of(name: str) -> float:
        raise _NotANumberError(f"{name} is no number.", name)


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotANumberError(f"the number {text[:40]} is too large.", text)
    return number


def _without_comments(text: str) -> str:
    def blanked(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else " " * len(found[0])

    return _TEXT_OR_COMMENT.sub(blanked, text.removeprefix("\ufeff"))


def _outside_of_texts(text: str) -> str:
    return _TEXT_OR_COMMENT.sub(lambda found: " " * len(found[0]), text)


def _require_one_of_each(text: str) -> None:
    """Refuses repeated keys in one object: a parser takes the last, but a reader often the first."""
    within: list[set[str] | None] = []
    before = ""
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                within.append(set() if token[0] == "{" else None)
            case "}" | "]":
                within.pop()
            case quoted if quoted[0] == '"' and before in ("{", ",") and within:
                _note_key(within[-1], quoted, text, token.start())
            case _:
                pass
        if len(within) > _MAX_DEPTH:
            raise NotJsonError(f"The JSON is nested deeper than {_MAX_DEPTH} levels.", _place(text, token.start()))
        before = token[0]


def _note_key(seen: set[str] | None, quoted: str, text: str, at: int) -> None:
    """`seen` is None in a list."""
    if seen is None:
        return
    key: str = json.loads(quoted)
    if key in seen:
        raise NotJsonError(f"The key {key[:80]!r} occurs twice in one object.", _place(text, at))
    seen.add(key)


def _member(text: str, at: int, wanted: str) -> int:
    """Where the value of a key begins, in an object at `at` that has the key."""
    at += 1
    while True:
        key, at = _DECODER.raw_decode(text, _after_space(text, at))
        at = _after_space(text, _after_space(text, at) + 1)
        if key == wanted:
            return at
        at = _after_value(text, at)


def _item(text: str, at: int, wanted: int) -> int:
    at = _after_space(text, at + 1)
    for _ in range(wanted):
        at = _after_space(text, _after_value(text, at))
    return at


def _after_value(text: str, at: int) -> int:
    """Behind a value and the comma that follows it."""
    _, at = _DECODER.raw_decode(text, at)
    return _after_space(text, at) + 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _place(text: str, at: int) -> Place:
    before = text.rfind("\n", 0, at)
    return Place(text.count("\n", 0, at) + 1, at - before)
