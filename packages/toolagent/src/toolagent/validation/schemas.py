"""Checking values against JSON Schema, and schemas against theirs. Schemas may not load anything from elsewhere."""

import json
from collections.abc import Iterable
from functools import lru_cache

import jsonschema_rs
from pydantic import JsonValue

from toolagent.contracts.calls import ValidationIssue
from toolagent.contracts.manifest import JsonSchema

__all__ = ["MAX_ISSUES", "issues_of", "schema_faults"]

MAX_ISSUES = 100
"""Nobody reads more, and a result has to fit into a workflow's history."""


def issues_of(schema: JsonSchema, value: JsonValue) -> tuple[ValidationIssue, ...]:
    """Everything about the value that breaks the schema, each with its path. Raises ValueError for a schema that is none."""
    return _issues(_validator(json.dumps(schema, sort_keys=True)).iter_errors(value))


def schema_faults(schema: JsonSchema) -> tuple[ValidationIssue, ...]:
    """Everything that keeps the document from being a JSON Schema that we can use; empty when there is nothing."""
    wrong = _issues(_metaschema().iter_errors(schema))
    if wrong:
        return wrong
    try:
        _validator(json.dumps(schema, sort_keys=True))
    except ValueError as error:
        return (ValidationIssue(path="$", message=_short(str(error).split("\n", 1)[0]), keyword="$schema"),)
    return ()


# Making it takes longer than reading a tool, of which there may be thousands.
@lru_cache(maxsize=1)
def _metaschema() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": "https://json-schema.org/draft/2020-12/schema"})


@lru_cache(maxsize=2048)
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(json.loads(schema), retriever=_refuse, validate_formats=True, ignore_unknown_formats=True)


def _refuse(uri: str) -> JsonValue:
    raise ValueError(f"A schema may not refer to other documents: {uri}")


def _issues(errors: Iterable[jsonschema_rs.ValidationError]) -> tuple[ValidationIssue, ...]:
    found: list[ValidationIssue] = []
    for error in errors:
        if len(found) == MAX_ISSUES:
            break
        found.append(ValidationIssue(path=_path(error.instance_path), message=_short(error.message), keyword=_keyword(error)))
    return tuple(found)


def _path(parts: Iterable[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _keyword(error: jsonschema_rs.ValidationError) -> str:
    words = [part for part in error.schema_path if isinstance(part, str)]
    return words[-1] if words else ""


def _short(message: str, limit: int = 500) -> str:
    """The library quotes the whole value, which may be a megabyte."""
    return message if len(message) <= limit else f"{message[: limit // 2]} … {message[-limit // 2 :]}"
