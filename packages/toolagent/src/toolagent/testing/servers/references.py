r"""References from a turn to the conversation, such as `{{ last_result.container_id }}`.

| reference | is |
|---|---|
| `last_result` | the latest tool result |
| `last_results.0` | the results in the latest user message, in order |
| `results.create_docker_env` | the latest result of the tool of that name |
| `turn` | the number of this turn, from 1 |

A result that is valid JSON is read as JSON; a dotted path leads into it (a number is a place in a list). Any other result is text. A path
also leads into text with a `name: value` on each line, as Tool Agent's own agent tools answer; a value of several lines is below its name.
A string that is only a reference becomes the value with its type. In longer text, the reference becomes the value's text or JSON.
Braces around anything else stay unchanged, because models also write templates.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import cast

from pydantic import JsonValue

__all__ = ["Unresolved", "filled", "resolved", "with_texts"]

_FIELD = re.compile(r"([a-z_][a-z0-9_]*):(?: (.*))?")
_REFERENCE = re.compile(r"\{\{\s*((?:last_result|last_results|results|turn)(?:\.[\w-]+)*)\s*\}\}")


class Unresolved(ValueError):
    """A reference leads to nothing. The message says what exists."""


def resolved(value: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    """The value with all references replaced. Raises Unresolved."""

    def of(text: str) -> JsonValue:
        whole = _REFERENCE.fullmatch(text.strip())
        return _looked_up(whole[1], values) if whole else filled(text, values)

    return with_texts(value, of)


def with_texts(value: JsonValue, change: Callable[[str], JsonValue]) -> JsonValue:
    """The value with `change` applied to each string in it, except the names of objects."""
    match value:
        case str():
            return change(value)
        case list():
            return [with_texts(item, change) for item in value]
        case dict():
            return {key: with_texts(item, change) for key, item in value.items()}
        case _:
            return value


def filled(text: str, values: Mapping[str, JsonValue]) -> str:
    """The text with each reference replaced by the value's text. Raises Unresolved."""
    return _REFERENCE.sub(lambda found: _text(_looked_up(found[1], values)), text)


def _looked_up(path: str, values: Mapping[str, JsonValue]) -> JsonValue:
    value: JsonValue = cast("JsonValue", dict(values))
    for part in path.split("."):
        match value:
            case dict() if part in value:
                value = value[part]
            case list() if part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            case str() if part in (fields := _fields(value)):
                value = fields[part]
            case _:
                raise Unresolved(f"{{{{ {path} }}}} leads to nothing: there is no {part!r} in {_described(value)}.")
    return value


def _fields(text: str) -> dict[str, JsonValue]:
    """The fields of a text with a `name: value` on each line; empty for any other text."""
    found: dict[str, list[str]] = {}
    below: list[str] | None = None
    for line in text.split("\n"):
        named = _FIELD.fullmatch(line)
        if named is not None:
            below = found[named[1]] = [named[2]] if named[2] is not None else []
        elif below is None:
            return {}
        else:
            below.append(line)
    return {name: _value("\n".join(lines)) for name, lines in found.items()}


def _value(text: str) -> JsonValue:
    # Only lists and objects are read as JSON: an id may be all digits.
    if not text.startswith(("[", "{")):
        return text
    try:
        return cast("JsonValue", json.loads(text))
    except ValueError:
        return text


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _described(value: JsonValue) -> str:
    match value:
        case dict():
            return f"an object with {', '.join(map(repr, value)) or 'nothing'}"
        case list():
            return f"a list of {len(value)}"
        case str():
            return f"the text {value[:200]!r}, which is not JSON"
        case _:
            return json.dumps(value)
