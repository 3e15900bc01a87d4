"""Checks values against JSON Schemas, and schemas themselves.

Schemas may not load other documents.

Expensive checks run in a process with limits (`checkers`), all others in this process.
"""

import asyncio
import json
from collections.abc import Iterable
from functools import lru_cache

from pydantic import JsonValue

from toolagent.contracts.calls import ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.core.schemas import text_of
from toolagent.core.weights import weight_of
from toolagent.validation.checkers import CHECK_MEMORY_BYTES, CHECK_S, REASONS_S, Checked, check, check_soon
from toolagent.validation.checking import METASCHEMA, Found, explained, secret_text, short, validator
from toolagent.validation.judgement import MOST_PATTERNS, Judgement, judged, pattern_size

__all__ = ["MAX_ISSUES", "find_issues", "issues_of", "schema_faults"]

MAX_ISSUES = 100
"""More issues help no reader, and a result must fit into a workflow's history."""

_CHEAP = 200_000
"""Looks that are taken in this process, within some milliseconds."""

_CHEAP_REASONS = 2_000
"""The same for the reasons. Each reason quotes the value, and the library makes all reasons before it returns the first."""

_SOMEWHERE = "The value does not fit, and finding out where"
_METASCHEMA_COST = 32
_LARGE_SCHEMA = 20_000
_READ_HERE = 200_000
"""Characters of a schema that the library reads in some hundredths of a second. Meanwhile, it blocks all threads."""


def issues_of(schema: JsonSchema, value: JsonValue) -> tuple[ValidationIssue, ...]:
    """The faults of the value, each with its path, up to MAX_ISSUES. Blocks for some seconds at most.

    Raises ValueError for an invalid schema, CheckersBusyError.
    """
    text = json.dumps(schema, sort_keys=True)
    at_once = _at_once(text, value)
    return _issues(check(text, value, MAX_ISSUES)) if at_once is None else at_once


async def find_issues(schema: JsonSchema, value: JsonValue, *, quotes_values: bool = True) -> tuple[ValidationIssue, ...]:
    """`issues_of` without blocking the event loop. The schema must not change any more."""
    text = text_of(schema) if quotes_values else secret_text(text_of(schema))
    if not _judgement(text):
        await asyncio.to_thread(_judged, text)
    at_once = _at_once(text, value)
    return _issues(await check_soon(text, value, MAX_ISSUES)) if at_once is None else at_once


def schema_faults(schema: JsonSchema) -> tuple[ValidationIssue, ...]:
    """The faults of the document as a JSON Schema; empty if it is usable. Blocks.

    Raises CheckersBusyError.
    """
    text = json.dumps(schema, sort_keys=True)
    is_large = len(text) > _LARGE_SCHEMA or pattern_size(schema) > MOST_PATTERNS
    found = None if is_large else _at_once(METASCHEMA, schema)
    if wrong := _issues(check(METASCHEMA, schema, MAX_ISSUES)) if found is None else found:
        return wrong
    try:
        judgement = _judged(text)
        if is_large or judgement.cost is None:  # not compiled in this process
            _issues(check(text, None, 1))
    except ValueError as error:
        return (ValidationIssue(path="$", message=short(str(error).split("\n", 1)[0]), keyword="$schema"),)
    return judgement.faults


def _at_once(schema: str, value: JsonValue) -> tuple[ValidationIssue, ...] | None:
    """The issues, checked in this process; None if that may take too long."""
    cost = _METASCHEMA_COST if schema is METASCHEMA else _judged(schema).cost
    if cost is None:
        return None
    looks = cost * weight_of(value, _CHEAP // cost)
    if looks > _CHEAP:
        return None
    checker = validator(schema)
    try:
        if checker.is_valid(value):
            return ()
        return _told(explained(checker.iter_errors(value), MAX_ISSUES)) if looks <= _CHEAP_REASONS else None
    except UnicodeEncodeError as error:
        return _told([("$", str(error), "")])


@lru_cache(maxsize=2048)
def _judgement(_schema: str) -> list[Judgement]:
    """The judgement of a schema, if it is known yet."""
    return []


def _judged(schema: str) -> Judgement:
    """Takes up to half a second the first time. Raises ValueError for an invalid schema."""
    known = _judgement(schema)
    if known:
        return known[0]
    judgement = judged(json.loads(schema)) if len(schema) <= _READ_HERE else Judgement(None)
    if judgement.cost is not None:
        validator(schema)
    known.append(judgement)
    return judgement


def _issues(checked: Checked) -> tuple[ValidationIssue, ...]:
    """Raises ValueError for an invalid schema."""
    if checked.error:
        raise ValueError(checked.error)
    if checked.valid:
        return ()
    if checked.found is not None:
        return _told(checked.found)
    what, seconds = "Checking the value", CHECK_S
    if checked.valid is False:
        what, seconds = "The value does not fit, and finding out where else" if checked.first else _SOMEWHERE, REASONS_S
    message = (
        f"{what} took more than {seconds:g} s or {CHECK_MEMORY_BYTES >> 20} MiB of memory, and was ended. Send less, or nest it less "
        "deeply; the tool's maintainer can make the branches of its schema (anyOf, oneOf, patterns) exclude each other."
    )
    return (*_told(checked.first), ValidationIssue(path="$", message=message, keyword="limit"))


def _told(found: Iterable[Found]) -> tuple[ValidationIssue, ...]:
    return tuple(ValidationIssue(path=path, message=message, keyword=keyword) for path, message, keyword in found)
