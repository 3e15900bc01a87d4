r"""What a turn takes over from the conversation: `{{ last_result.container_id }}` and the like.

| reference | is |
|---|---|
| `last_result` | the latest tool result |
| `last_results.0` | the results in the latest user message, in order |
| `results.create_docker_env` | the latest result of the tool of that name |
| `turn` | the number of this turn, from 1 |

A result that reads as JSON is that value, and a dotted path leads into it (a number is the place in a list); else it is text. A path
leads into text too that has a `name: value` a line, as Tool Agent's own agent tools answer; a text of several lines stands below its name.
A string that is a reference and nothing else becomes the value with its type; in longer text stands the value's text, or its JSON.
Braces around anything else stay as they are: models write templates too.
"""

import json
import re
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

__all__ = ["Unresolved", "filled", "resolved"]

_FIELD = re.compile(r"([a-z_][a-z0-9_]*):(?: (.*))?")
_REFERENCE = re.compile(r"\{\{\s*((?:last_result|last_results|results|turn)(?:\.[\w-]+)*)\s*\}\}")


class Unresolved(ValueError):
    """A reference leads to nothing; the message says what there is."""


def resolved(value: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    """The value with all references replaced. Raises Unresolved."""
    match value:
        case str():
            whole = _REFERENCE.fullmatch(value.strip())
            return _looked_up(whole[1], values) if whole else filled(value, values)
        case list():
            return [resolved(item, values) for item in value]
        case dict():
            return {key: resolved(item, values) for key, item in value.items()}
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
    """Of a text with a `name: value` a line; empty for any other."""
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
    # An id may be all digits, so what is neither a list nor an object stays text.
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
