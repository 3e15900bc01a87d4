"""The parameters of an operation outside its body: their place and style."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from engine.making.json_values import Part, items, part, texts
from engine.making.openapi.bodies import json_schema
from engine.making.openapi.documents.document import OpenApiDocument
from toolagent.contracts.sources import ParameterStyle

Place = Literal["path", "query", "header"]

_LONGEST = 2_000
_IN_HEADER = r"^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$"
_OWN_HEADERS = frozenset(
    {
        "accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length", "content-type", "cookie",
        "expect", "host", "idempotency-key", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
        "x-output-dir",
    }
)  # fmt: skip
"""Set by the sender of a request, never by a parameter."""


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    place: Place
    required: bool
    schema: JsonValue
    description: str = ""
    style: ParameterStyle | None = None


class NoTool(ValueError):
    """An operation cannot be a tool; the message says why."""


def parameters_of(document: OpenApiDocument, path: str, *lists: Sequence[JsonValue]) -> Iterator[Parameter | str]:
    """An operation's own parameters win over those of its path. A path parameter that is not described is a string.

    Yields a string for a parameter that is not sent: the reason.
    """
    found: dict[tuple[str, str], Part] = {}
    for described in (document.resolved(one) for many in lists for one in many):
        found[str(described.get("name")), str(described.get("in"))] = described
    for piece in path.split("{")[1:]:
        found.setdefault((piece.partition("}")[0], "path"), {"required": True, "schema": {"type": "string"}})
    for (name, place), described in found.items():
        if not (place == "header" and name.lower() in _OWN_HEADERS):
            yield _parameter(document, name, place, described)


def _parameter(document: OpenApiDocument, name: str, place: str, described: Part) -> Parameter | str:
    """The parameter, or the reason why an optional one is not sent. Raises NoTool if a required one cannot be sent."""
    required = described.get("required") is True or place == "path"
    try:
        return _sent(document, name, place, described, required=required)
    except NoTool as reason:
        if required:
            raise
        return str(reason)


def _sent(document: OpenApiDocument, name: str, place: str, described: Part, *, required: bool) -> Parameter:
    """Raises NoTool for a parameter that cannot be sent."""
    description = text_of(described, "description")
    match place:
        case "path" | "query" | "header":
            if content := part(described.get("content")):
                schema = json_schema(content)
                if schema is None:
                    raise NoTool(f"Its parameter {name!r} is a document of its own within the {place}, and no JSON.")
                return Parameter(name, place, required, schema, description, "json")
            schema = described.get("schema", {})
            types = _types(document, schema)
            try:
                style = _style(place, described, types)
            except ValueError as odd:
                raise NoTool(f"Its parameter {name!r} is written in the style {str(odd)[:30]}, which is not sent here.") from odd
            schema = _not_empty(schema) if place == "path" else _visible(schema) if place == "header" else schema
            return Parameter(name, place, required, schema, description, style)
        case _:
            raise NoTool(f"It takes the {place} parameter {name!r}, which is not sent.")


def _style(place: Place, described: Part, types: frozenset[str]) -> ParameterStyle | None:
    """None for the usual style. Raises ValueError with a style that cannot be sent."""
    explode, composite = described.get("explode"), types & {"array", "object"}
    if place == "query":
        return _query_style(described.get("style", "form"), explode, types)
    style = described.get("style", "simple")
    if style != "simple" or (explode is True and "object" in types):
        raise ValueError(f"{style}{' with explode' if explode is True else ''}")
    return "comma" if composite else None


def _query_style(style: JsonValue, explode: JsonValue, types: frozenset[str]) -> ParameterStyle | None:
    match style:
        case "deepObject":
            return "deep"
        case "form" if explode is False:
            return "comma" if types & {"array", "object"} else None
        case "form":
            return "fields" if "object" in types else None
        case "spaceDelimited" | "pipeDelimited" if explode is True or "array" not in types:
            return None
        case "spaceDelimited":
            return "space"
        case "pipeDelimited":
            return "pipe"
        case _:
            raise ValueError(str(style))


def _types(document: OpenApiDocument, schema: JsonValue) -> frozenset[str]:
    """The types that a value may have, by the schema and its branches."""
    whole = document.resolved(schema)
    branches = [document.resolved(one) for key in ("anyOf", "oneOf", "allOf") for one in items(whole.get(key))]
    return frozenset(kind for one in (whole, *branches) for kind in texts(one.get("type")))


def _not_empty(schema: JsonValue) -> JsonValue:
    """The schema of a path parameter, which cannot be an empty string."""
    if isinstance(schema, dict) and schema.get("type") == "string" and not schema.get("minLength"):
        return {**schema, "minLength": 1}
    return schema


def _visible(schema: JsonValue) -> JsonValue:
    """The schema of a header: only visible characters, unless it has a pattern of its own."""
    return {"pattern": _IN_HEADER, **schema} if isinstance(schema, dict) else schema


def text_of(described: Part, name: str) -> str:
    value = described.get(name)
    return value.strip()[:_LONGEST] if isinstance(value, str) else ""
