"""Checks a value against a schema with the library, and shortens its errors.

Imports little, because a small program uses it.
"""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Never

import jsonschema_rs

from toolagent.core.json_paths import json_path

__all__ = ["METASCHEMA", "Found", "explained", "secret_text", "short", "validator"]

Found = tuple[str, str, str]
"""JSON path, message, keyword."""

METASCHEMA = json.dumps({"$ref": "https://json-schema.org/draft/2020-12/schema"})
"""The text of the schema of schemas."""


def _with_or_without_offset(name: str) -> Callable[[str], bool]:
    strict = jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True)
    return lambda value: strict.is_valid(value) or strict.is_valid(f"{value}Z")


_FORMATS = {name: _with_or_without_offset(name) for name in ("date-time", "time")}
"""Common frameworks use these formats also for local times, as pydantic does for a `datetime` without a time zone."""

_SECRETS = ('"writeOnly": true', '"password"')
"""A schema with one of these texts has a secret. Its errors are recorded, so they quote no value: a secret may be in the wrong place."""


@lru_cache(maxsize=2048)
def validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    """The validator of the text of a schema. Raises ValueError for an invalid schema."""
    formats = schema != METASCHEMA  # the library says more about a bad regular expression when it compiles the schema
    mask = "***" if any(text in schema for text in _SECRETS) else None
    return jsonschema_rs.Draft202012Validator(
        json.loads(schema), retriever=_refuse, validate_formats=formats, ignore_unknown_formats=True, formats=_FORMATS, mask=mask
    )


def secret_text(schema: str) -> str:
    """The text of the same schema as one of secret values."""
    return f"{{{_SECRETS[0]}, {schema[1:]}" if schema != "{}" else schema


def explained(errors: Iterable[jsonschema_rs.ValidationError], most: int) -> tuple[Found, ...]:
    """The first errors, with short messages."""
    return tuple((json_path(error.instance_path), short(error.message), _keyword(error)) for error in islice(errors, most))


def short(message: str, limit: int = 500) -> str:
    """The beginning and the end of a message: it may quote a value of a megabyte."""
    return message if len(message) <= limit else f"{message[: limit // 2]} … {message[-limit // 2 :]}"


def _refuse(uri: str) -> Never:
    raise ValueError(f"A schema may not refer to other documents: {uri}")


def _keyword(error: jsonschema_rs.ValidationError) -> str:
    return next((part for part in reversed(error.schema_path) if isinstance(part, str)), "")
