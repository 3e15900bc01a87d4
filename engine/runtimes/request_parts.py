"""Where each parameter of a call goes in an HTTP request: into the path, the query, a header or the body."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote

from pydantic import JsonValue

from engine.runtimes.failures import NotSent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import HttpMethod, HttpSource

__all__ = ["Places", "RequestParts", "request_parts"]

_NAME = re.compile(r"\{([^{}]+)\}")
_HEADER_TEXT = re.compile(r"([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?")
"""HTTP takes a space only between other characters."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where parameters go that the method alone does not place; see HttpSource."""

    query: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str | None = None

    @classmethod
    def of(cls, source: HttpSource) -> Self:
        return cls(frozenset(source.query_parameters), source.header_parameters, source.body_parameter)


@dataclass(frozen=True, slots=True)
class RequestParts:
    """`path` is quoted. `body` is JSON, None where the method has none, or the parameter that is the body was not given."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()


def request_parts(method: HttpMethod, path: str, params: dict[str, JsonValue], places: Places | None = None) -> RequestParts:
    """Fill `{name}` in the path, and what has a place of its own; GET and DELETE send the rest as query, the others as a JSON body.

    In a query a list is a repeated key, an object its JSON text, a boolean `true` or `false`, and null is left out.
    Raises NotSent (`validation_error`) for a parameter that is missing in the path or cannot be written.
    """
    places = places or Places()
    used = {*_NAME.findall(path), *places.headers}
    filled = _NAME.sub(lambda found: _segment(found.group(1), params), path)
    headers = tuple((header, _header(name, params[name])) for name, header in places.headers.items() if params.get(name) is not None)
    rest = {name: value for name, value in params.items() if name not in used}
    if method in ("GET", "DELETE"):
        return RequestParts(filled, _query(rest), headers=headers)
    query = _query({name: value for name, value in rest.items() if name in places.query})
    rest = {name: value for name, value in rest.items() if name not in places.query}
    if places.body is None:
        return RequestParts(filled, query, _json(rest).encode(), headers)
    body = _json(params[places.body]).encode() if places.body in params else None
    return RequestParts(filled, query, body, headers)


def _query(params: Mapping[str, JsonValue]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, value in params.items() for text in _query_texts(value))


def _header(name: str, value: JsonValue) -> str:
    text = _text(value)
    if not _HEADER_TEXT.fullmatch(text):
        raise _invalid(name, "may have visible ASCII characters only, and spaces between them: it is sent in a header")
    return text


def _segment(name: str, params: dict[str, JsonValue]) -> str:
    value = params.get(name)
    if value is None or isinstance(value, (list, dict)):
        said = "is missing" if value is None else "must be a text, a number or a boolean"
        raise _invalid(name, f"{said}: it is part of the path of the request")
    text = _text(value)
    # Empty or dots would lead to another path than the tool's.
    if text in ("", ".", ".."):
        raise _invalid(name, f"cannot be {text!r}: it is part of the path of the request")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise _invalid(name, "is no valid text") from None


def _query_texts(value: JsonValue) -> list[str]:
    match value:
        case None:
            return []
        case list():
            return [_text(item) for item in value if item is not None]
        case _:
            return [_text(value)]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: JsonValue) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError) as error:
        raise NotSent(ErrorType.VALIDATION_ERROR, f"The parameters cannot be written as JSON: {error}") from error
    return text


def _invalid(name: str, said: str) -> NotSent:
    return NotSent(ErrorType.VALIDATION_ERROR, f"The parameter {name!r} {said}.", {"path": f"$.{name}"})
