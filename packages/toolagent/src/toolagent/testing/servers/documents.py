"""Reads YAML files into models.

Errors name the file, the path in it and the remedy.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from toolagent.core.json_paths import json_path
from toolagent.core.suggestions import nearest
from toolagent.core.texts import shortened

__all__ = ["DocumentError", "Part", "parsed", "read_document"]

_SHOWN = 10

Shape = TypeVar("Shape", bound=BaseModel)


class Part(BaseModel):
    """A part of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class DocumentError(ValueError):
    """The file cannot be read, is not YAML, or does not fit the model."""


def read_document(path: Path, shape: type[Shape]) -> Shape:
    """Raises DocumentError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}. Name a UTF-8 text file that is there.") from error
    return parsed(text, shape, str(path))


def parsed(text: str, shape: type[Shape], name: str) -> Shape:
    """The model of a text that errors call `name`. Raises DocumentError."""
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
    """The steps of a location that are in the file, each with its value. Pydantic also names the choices of a union."""
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
            # A single value instead of a list, or the name of a choice.
            continue
        yield part, value


def _reason(given: object, shape: type[BaseModel], fault: ErrorDetails) -> str:
    match fault["type"], fault["input"]:
        case "extra_forbidden", _:
            return f"there is no such field.{_meant(given, shape, fault)}"
        case "missing", _:
            return "is missing. Add it."
        case "string_type", bool() | int() | float():
            # To YAML, `yes`, `on` and 1.10 are not text.
            return f"must be text, and YAML reads {fault['input']!r}; put it in quotes."
        case _:
            return f"{fault['msg']}; it is {shortened(repr(fault['input']), 80)}."


def _meant(given: object, shape: type[BaseModel], fault: ErrorDetails) -> str:
    near = nearest(str(fault["loc"][-1]), _fields(shape), 1)
    around = [given, *(value for _, value in _steps(given, fault["loc"]))]
    siblings = cast("Mapping[str, object]", around[-2])
    is_new = near and near[0] not in siblings
    return f" Did you mean {near[0]!r}?" if is_new else " Remove it, or see the schema for what there is."


def _fields(shape: type[BaseModel]) -> set[str]:
    """The names of the fields of a model and of all models in it."""
    schema = shape.model_json_schema()
    definitions = cast("dict[str, dict[str, object]]", schema.get("$defs", {}))
    properties = [cast("dict[str, object]", one.get("properties", {})) for one in (schema, *definitions.values())]
    return {name for names in properties for name in names}
