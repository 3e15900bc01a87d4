"""Checks a value against a schema with the library, and words its errors. Imports little: a program starts with it."""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import jsonschema_rs

from toolagent.core.json_paths import json_path

__all__ = ["METASCHEMA", "Found", "explained", "short", "validator"]

Found = tuple[str, str, str]
"""JSON path, message, keyword."""

METASCHEMA = json.dumps({"$ref": "https://json-schema.org/draft/2020-12/schema"})
"""The schema of schemas, as text."""


def _with_or_without_offset(name: str) -> Callable[[str], bool]:
    strict = jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True)
    return lambda value: strict.is_valid(value) or strict.is_valid(f"{value}Z")


_FORMATS = {name: _with_or_without_offset(name) for name in ("date-time", "time")}
"""The common frameworks write local times under these, as pydantic does for a `datetime` without a time zone."""


@lru_cache(maxsize=2048)
def validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    """`schema` is its text. Raises ValueError for an invalid one."""
    formats = schema != METASCHEMA  # of regular expressions the library tells more when it takes the schema
    return jsonschema_rs.Draft202012Validator(
        json.loads(schema), retriever=_refuse, validate_formats=formats, ignore_unknown_formats=True, formats=_FORMATS
    )


def explained(errors: Iterable[jsonschema_rs.ValidationError], most: int) -> tuple[Found, ...]:
    """The first errors, with short messages."""
    found: list[Found] = []
    for error in errors:
        if len(found) == most:
            break
        found.append((json_path(error.instance_path), short(error.message), _keyword(error)))
    return tuple(found)


def short(message: str, limit: int = 500) -> str:
    """A message without the quoted value, which may be a megabyte."""
    return message if len(message) <= limit else f"{message[: limit // 2]} … {message[-limit // 2 :]}"


def _refuse(uri: str) -> Any:
    raise ValueError(f"A schema may not refer to other documents: {uri}")


def _keyword(error: jsonschema_rs.ValidationError) -> str:
    words = [part for part in error.schema_path if isinstance(part, str)]
    return words[-1] if words else ""
