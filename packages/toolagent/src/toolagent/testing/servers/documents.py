"""YAML files that people write, read into a model; what is wrong is said with file, path and remedy."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from toolagent.core.json_paths import json_path
from toolagent.core.suggestions import nearest

__all__ = ["DocumentError", "parsed", "read_document"]

_SHOWN = 10

Shape = TypeVar("Shape", bound=BaseModel)


class DocumentError(ValueError):
    """The file cannot be read, is no YAML, or is not what the model describes."""


def read_document(path: Path, shape: type[Shape]) -> Shape:
    """Raises DocumentError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}. Name a UTF-8 text file that is there.") from error
    return parsed(text, shape, str(path))


def parsed(text: str, shape: type[Shape], name: str) -> Shape:
    """What a text says; `name` is how its faults call it. Raises DocumentError."""
    try:
        given: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DocumentError(f"{name}: this is not YAML: {error}. Mind the indentation, and quote text that holds ': '.") from error
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        faults = [f"{name}: {_path(given, one['loc'])}: {_reason(given, shape, one)}" for one in error.errors()]
        more = [f"… and {len(faults) - _SHOWN} more."] if len(faults) > _SHOWN else []
        raise DocumentError("\n".join([*dict.fromkeys(faults[:_SHOWN]), *more])) from error


def _path(given: object, loc: Sequence[int | str]) -> str:
    return json_path(part for part, _ in _steps(given, loc))


def _steps(given: object, loc: Sequence[int | str]) -> Iterator[tuple[int | str, object]]:
    """The parts of a place that are in the file, each with its value: pydantic also names the choices of a union."""
    value = given
    for place, part in enumerate(loc):
        if isinstance(part, int) and isinstance(value, list):
            value = cast("list[object]", value)[part]
        elif isinstance(part, str) and isinstance(value, dict):
            held = cast("dict[str, object]", value)
            if part not in held and place < len(loc) - 1:
                continue
            value = held.get(part)
        else:
            # One thing where a list may be, or the name of a choice.
            continue
        yield part, value


def _reason(given: object, shape: type[BaseModel], fault: ErrorDetails) -> str:
    match fault["type"], fault["input"]:
        case "extra_forbidden", _:
            return f"there is no such field.{_meant(given, shape, fault)}"
        case "missing", _:
            return "is missing. Add it."
        case "string_type", bool() | int() | float():
            # `yes`, `on` and 1.10 are no text to YAML.
            return f"must be text, and YAML reads {fault['input']!r}; put it in quotes."
        case _:
            return f"{fault['msg']}; it is {_short(fault['input'])}."


def _meant(given: object, shape: type[BaseModel], fault: ErrorDetails) -> str:
    fields = _fields(shape)
    word = str(fault["loc"][-1])
    near = nearest(word, fields, 1)
    beside = [given, *(value for _, value in _steps(given, fault["loc"]))]
    there = cast("Mapping[str, object]", beside[-2])
    known = f" Did you mean {near[0]!r}?" if near and near[0] not in there else ""
    return known or " Remove it, or see the schema for what there is."


def _fields(shape: type[BaseModel]) -> set[str]:
    """The names of the fields of a model and of all models in it."""
    schema = shape.model_json_schema()
    definitions = cast("dict[str, dict[str, object]]", schema.get("$defs", {}))
    properties = [cast("dict[str, object]", one.get("properties", {})) for one in (schema, *definitions.values())]
    return {name for names in properties for name in names}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
