"""Turns words of the command line into parameters of a tool, by the tool's input schema."""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.core.parameter_schemas import is_file, items_schema, property_schema, types_of
from toolagent.core.schemas import kind_of

__all__ = ["ParameterError", "Upload", "named_values", "parse_json", "parse_parameters", "require_text", "with_uploads"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

ReadText = Callable[[str], str]


class ParameterError(ValueError):
    """The words cannot be turned into parameters. The message names the word and says what to write instead."""


class Upload(str):
    """The path of a local file, in the place of the id of its upload."""

    __slots__ = ()


@dataclass(frozen=True)
class _Word:
    name: str
    text: str
    raw: bool
    from_file: bool

    @property
    def as_typed(self) -> str:
        return f"{self.name}{':' if self.raw else ''}={'@' if self.from_file else ''}{self.text}"


def parse_parameters(words: Sequence[str], schema: JsonSchema, read_text: ReadText, base: str | None = None) -> dict[str, JsonValue]:
    """Reads `words` (`k=v`, `k=@file`, `k:=json`, or one JSON object) by `schema`.

    The words complete or override `base`, the JSON text of an object. `read_text` gives a file's text or raises ParameterError.
    A file to upload is an `Upload` in the result: pass the result through `with_uploads`. Raises ParameterError.
    """
    params = _object(base, "--params") if base is not None else {}
    wholes = [word for word in words if word.lstrip().startswith("{")]
    for whole in wholes:
        params |= _object(whole, "the JSON object")
    named: dict[str, list[_Word]] = {}
    for word in (_split(word) for word in words if word not in wholes):
        named.setdefault(word.name, []).append(word)
    for name, group in named.items():
        params[name] = _value(group, property_schema(schema, name), read_text)
    require_text(params)
    return params


def named_values(words: Iterable[str] | None, option: str) -> dict[str, str]:
    """The values of a repeated option of the form NAME=VALUE. Raises ParameterError."""
    found: dict[str, str] = {}
    for word in words or ():
        name, equals, found[name] = word.partition("=")
        if not (equals and name):
            raise ParameterError(f"{option} takes NAME=VALUE.")  # the word may hold a key
    return found


def parse_json(text: str, what: str) -> JsonValue:
    """Strict JSON: no NaN, no numbers beyond a double. The ParameterError calls the text `what`."""
    try:
        return cast("JsonValue", json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant, parse_float=_finite))
    except json.JSONDecodeError as error:
        raise ParameterError(f"{what} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from error
    except ValueError as error:
        raise ParameterError(f"{what} is not valid JSON: {error}.") from error
    except RecursionError as error:
        raise ParameterError(f"{what} is nested too deeply.") from error


def with_uploads(params: dict[str, JsonValue], upload: Callable[[Upload], str]) -> dict[str, JsonValue]:
    """The parameters with each `Upload` replaced by its file's id."""

    def replaced(value: JsonValue) -> JsonValue:
        if isinstance(value, Upload):
            return upload(value)
        return [replaced(item) for item in value] if isinstance(value, list) else value

    return {name: replaced(value) for name, value in params.items()}


def require_text(params: dict[str, JsonValue]) -> None:
    """Raises ParameterError for bytes that are not UTF-8. Python reads them as lone surrogates, which JSON cannot carry."""
    # The path of an upload is not sent, so any bytes are allowed in it.
    for name, value in with_uploads(params, lambda _: "").items():
        try:
            json.dumps({name: value}, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ParameterError(f"{name!r} holds characters that are not valid UTF-8.") from error
        except RecursionError as error:
            raise ParameterError(f"{name!r} is nested too deeply.") from error


def _object(text: str, what: str) -> dict[str, JsonValue]:
    value = parse_json(text, what)
    if not isinstance(value, dict):
        raise ParameterError(f'{what} must hold a JSON object, such as {{"text": "hello"}}, not {kind_of(value)}.')
    return value


def _split(word: str) -> _Word:
    name, equals, text = word.partition("=")
    raw = name.endswith(":")
    name = name.removesuffix(":")
    if not equals or not name:
        raise ParameterError(f"{word!r} is not a parameter: write name=value, name=@file, name:=json, or one JSON object.")
    return _Word(name, text.removeprefix("@"), raw=raw, from_file=text.startswith("@"))


def _value(words: list[_Word], schema: JsonSchema, read_text: ReadText) -> JsonValue:
    types = types_of(schema)
    first = words[0]
    if "array" in types and not first.raw and (len(words) > 1 or not _is_whole(first, types, schema)):
        if any(word.raw for word in words):
            raise ParameterError(f"{first.name} mixes {first.name}=… and {first.name}:=…; write it in one way.")
        return [_one(word, items_schema(schema), read_text) for word in words]
    if len(words) > 1:
        raise ParameterError(f"{first.name} is given {len(words)} times, but is not a list of values in the tool's schema; give it once.")
    return _one(first, schema, read_text)


def _is_whole(word: _Word, types: frozenset[str], schema: JsonSchema) -> bool:
    """Whether one word is the whole value, not the only item of a list."""
    if word.from_file:
        return not is_file(items_schema(schema))
    return "string" in types or word.text.lstrip().startswith("[") or word.text == "null"


def _one(word: _Word, schema: JsonSchema, read_text: ReadText) -> JsonValue:
    if word.from_file and not word.raw and is_file(schema):
        return Upload(word.text)
    text = read_text(word.text) if word.from_file else word.text
    if word.raw:
        return parse_json(text, word.as_typed)
    return _coerced(word, text, types_of(schema))


def _coerced(word: _Word, text: str, types: frozenset[str]) -> JsonValue:
    # A string stays a string, even if it looks like a number; `:=` is for other values.
    if not types or "string" in types:
        return text
    stripped = text.strip()
    if "null" in types and stripped == "null":
        return None
    if types & {"integer", "number"} and (number := _number(stripped, types)) is not None:
        return number
    if "boolean" in types and stripped.lower() in _TRUTH:
        return _TRUTH[stripped.lower()]
    if types & {"array", "object"}:
        return _structure(word, text, types)
    raise ParameterError(f"{word.as_typed}: {word.name} must be {_listed(types)}.")


def _structure(word: _Word, text: str, types: frozenset[str]) -> JsonValue:
    value = parse_json(text, word.as_typed)
    if kind_of(value) in types:
        return value
    raise ParameterError(f"{word.as_typed}: {word.name} must be {_listed(types)} as JSON, not {kind_of(value)}.")


def _number(text: str, types: frozenset[str]) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:
        value = float(text)
    if not math.isfinite(value) or ("number" not in types and not value.is_integer()):
        return None
    return value if "number" in types else int(value)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON value")


def _listed(types: frozenset[str]) -> str:
    return " or ".join(sorted(types))
