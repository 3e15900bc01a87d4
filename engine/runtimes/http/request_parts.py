"""Puts each parameter of a call into an HTTP request: into the path, the query, a header or the body."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeAlias
from urllib.parse import quote, urlencode

from pydantic import JsonValue

from engine.runtimes.failures import NotSent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import BodyEncoding, HttpMethod, HttpSource, ParameterStyle

_JSON = "application/json"
_NAME = re.compile(r"\{([^{}]+)\}")
_HEADER_TEXT = re.compile(r"([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?")
"""HTTP takes a space only between other characters."""
_SEPARATORS: Mapping[ParameterStyle, str] = {"comma": ",", "space": " ", "pipe": "|"}


@dataclass(frozen=True, slots=True)
class Places:
    """Where parameters go if the method alone does not tell, and how they are written; see HttpSource."""

    query: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str | None = None
    styles: Mapping[str, ParameterStyle] = field(default_factory=dict[str, ParameterStyle])
    encoding: BodyEncoding = "json"
    media_type: str = ""
    files: frozenset[str] = frozenset()

    @classmethod
    def of(cls, source: HttpSource) -> Self:
        return cls(
            frozenset(source.query_parameters),
            source.header_parameters,
            source.body_parameter,
            source.parameter_styles,
            source.body_encoding,
            source.body_media_type,
            frozenset(source.file_parameters),
        )


NO_PLACES = Places()


@dataclass(frozen=True, slots=True)
class Written:
    """A body in memory."""

    content: bytes
    media_type: str = _JSON


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a multipart body; for a file, `value` is its path."""

    name: str
    value: str
    is_file: bool = False
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class Multipart:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Octets:
    """The file at this path as the whole body; `name` is its parameter."""

    name: str
    path: str
    media_type: str


Body: TypeAlias = Written | Multipart | Octets


@dataclass(frozen=True, slots=True)
class RequestParts:
    """`path` is quoted. `body` is None if the method has none, or the parameter for it was not given."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Body | None = None
    headers: tuple[tuple[str, str], ...] = ()


def request_parts(method: HttpMethod, path: str, params: dict[str, JsonValue], places: Places = NO_PLACES) -> RequestParts:
    """Fills `{name}` in the path and all places; GET and DELETE send the rest in the query, other methods in the body.
    A DELETE has a body only if the source names a body parameter.

    In a query or form a list becomes a repeated key, an object its JSON text, a boolean `true` or `false`, and null is left out; a style
    changes this. Raises NotSent (`validation_error`) if a parameter of the path is missing, or one cannot be written.
    """
    used = {*_NAME.findall(path), *places.headers}
    filled = _NAME.sub(lambda found: _segment(found.group(1), params, places), path)
    headers = tuple(
        (header, _header(name, _styled(params[name], places.styles.get(name))))
        for name, header in places.headers.items()
        if params.get(name) is not None
    )
    rest = {name: value for name, value in params.items() if name not in used}
    if method == "GET" or (method == "DELETE" and places.body is None):
        return RequestParts(filled, _query(rest, places), headers=headers)
    in_query = places.query if method != "DELETE" else rest.keys() - {places.body}
    query = _query({name: value for name, value in rest.items() if name in in_query}, places)
    rest = {name: value for name, value in rest.items() if name not in in_query}
    return RequestParts(filled, query, _body(rest, places), headers)


def _body(rest: dict[str, JsonValue], places: Places) -> Body | None:
    match places.encoding:
        case "none":
            return None
        case "json" if places.body is None:
            return Written(_json(rest).encode(), places.media_type or _JSON)
        case "json":
            return Written(_json(rest[places.body]).encode(), places.media_type or _JSON) if places.body in rest else None
        case "form":
            return Written(urlencode(_query(_spread(rest, places), places)).encode(), "application/x-www-form-urlencoded")
        case "multipart":
            return Multipart(tuple(_fields(_spread(rest, places), places)))
        case "octets":
            value = rest.get(places.body or "")
            return Octets(places.body or "", value, places.media_type or "application/octet-stream") if isinstance(value, str) else None


def _spread(rest: dict[str, JsonValue], places: Places) -> Mapping[str, JsonValue]:
    """The fields of a form: the parameters, or the fields of the one object that is the whole body."""
    if places.body is None:
        return rest
    whole = rest.get(places.body, {})
    if not isinstance(whole, dict):
        raise _invalid(places.body, "must be an object: its fields are those of a form")
    return whole


def _fields(values: Mapping[str, JsonValue], places: Places) -> Iterator[Field]:
    for name, value in values.items():
        for one in value if isinstance(value, list) else [value]:
            match one:
                case None:
                    continue
                case str():
                    yield Field(name, one, is_file=name in places.files)
                case dict() | list():
                    yield Field(name, _json(one), media_type="application/json")
                case _:
                    yield Field(name, _json(one))


def _query(params: Mapping[str, JsonValue], places: Places) -> tuple[tuple[str, str], ...]:
    return tuple(pair for name, value in params.items() for pair in _pairs(name, value, places.styles.get(name)))


def _pairs(name: str, value: JsonValue, style: ParameterStyle | None) -> Iterator[tuple[str, str]]:
    if style == "deep" and isinstance(value, dict):
        for key, inner in value.items():
            yield from _pairs(f"{name}[{key}]", inner, style)
        return
    if style == "fields" and isinstance(value, dict):
        yield from ((key, text) for key, inner in value.items() for text in _query_texts(inner))
        return
    yield from ((name, text) for text in _query_texts(_styled(value, style)))


def _styled(value: JsonValue, style: ParameterStyle | None) -> JsonValue:
    match style, value:
        case ("comma" | "space" | "pipe") as one_of, list():
            return _SEPARATORS[one_of].join(_text(one) for one in value if one is not None)
        case "comma", dict():
            return ",".join(f"{key},{_text(one)}" for key, one in value.items() if one is not None)
        case "json", _ if value is not None:
            return _json(value)
        case _:
            return value


def _header(name: str, value: JsonValue) -> str:
    text = _text(value)
    if not _HEADER_TEXT.fullmatch(text):
        raise _invalid(name, "may have visible ASCII characters only, and spaces between them: it is sent in a header")
    return text


def _segment(name: str, params: dict[str, JsonValue], places: Places) -> str:
    value = _styled(params.get(name), places.styles.get(name))
    if value is None or isinstance(value, (list, dict)):
        said = "is missing" if value is None else "must be a text, a number or a boolean"
        raise _invalid(name, f"{said}: it is part of the path of the request")
    text = _text(value)
    # An empty part or dots would change the path.
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
