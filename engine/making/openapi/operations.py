"""The operations of an OpenAPI document that can be tools: what they take, what they give, how they are called."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import JsonValue

from engine.making.openapi.credentials import Credential, credential_of
from engine.making.openapi.document import DocumentRefused, OpenApiDocument, Part, part
from toolagent.contracts.sources import HttpMethod

__all__ = ["HEALTH_PATHS", "LeftOut", "Operation", "Parameter", "ReadOperations", "operations_of"]

Place = Literal["path", "query", "header"]

HEALTH_PATHS = frozenset({"/health", "/healthz", "/health/", "/livez", "/readyz", "/ping", "/-/health", "/api/health", "/status/health"})
_METHODS: tuple[HttpMethod, ...] = get_args(HttpMethod)
_MOST = 500
_LONGEST = 2_000
_IN_HEADER = r"^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$"
_OWN_HEADERS = frozenset(
    {
        "accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length", "content-type", "cookie",
        "expect", "host", "idempotency-key", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
        "x-output-dir",
    }
)  # fmt: skip
"""Said by whoever sends a request, never by a parameter."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """`schema` is as the document has it."""

    name: str
    place: Place
    required: bool
    schema: JsonValue
    description: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """`body` and `output` are schemas as the document has them; None: there is none, or nothing is said of it."""

    method: HttpMethod
    path: str
    operation_id: str
    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    body: JsonValue
    body_required: bool
    output: JsonValue
    credential: Credential | None

    @property
    def is_health(self) -> bool:
        return self.method == "GET" and self.path in HEALTH_PATHS and not any(one.required for one in self.parameters)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An operation that is no tool, as `METHOD /path`."""

    operation: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReadOperations:
    """`health_path` is that of an operation that tells whether the service works, which is no tool."""

    operations: tuple[Operation, ...]
    left_out: tuple[LeftOut, ...]
    health_path: str | None = None


class _NoTool(ValueError):
    """An operation cannot be a tool; the message says why."""


def operations_of(document: OpenApiDocument) -> ReadOperations:
    """In the order of the document. Blocks."""
    operations: list[Operation] = []
    left_out: list[LeftOut] = []
    health: str | None = None
    for method, path, item, described in _described(document):
        try:
            one = _operation(document, method, path, item, described)
        except (_NoTool, DocumentRefused) as reason:
            left_out.append(LeftOut(f"{method} {path}", str(reason)))
            continue
        if one.is_health:
            health = health or path
            left_out.append(LeftOut(f"{method} {path}", "It tells whether the service works, and is asked for that."))
        elif len(operations) == _MOST:
            left_out.append(LeftOut(f"{method} {path}", f"There are more than {_MOST} operations."))
        else:
            operations.append(one)
    return ReadOperations(tuple(operations), tuple(left_out), health)


def _described(document: OpenApiDocument) -> Iterator[tuple[HttpMethod, str, Part, Part]]:
    for path, value in part(document.root.get("paths")).items():
        try:
            item = document.resolved(value)
        except DocumentRefused:
            continue
        for method in _METHODS:
            if isinstance(described := item.get(method.lower()), dict):
                yield method, path, item, described


def _operation(document: OpenApiDocument, method: HttpMethod, path: str, item: Part, described: Part) -> Operation:
    if not path.startswith("/"):
        raise _NoTool("Its path does not begin with a slash.")
    if "?" in path or "#" in path:
        # In the query of a source the names of our secrets mean what they are: a document must not write one.
        raise _NoTool("Its path holds a `?` or `#`. Describe what stands behind that as parameters in the query.")
    parameters = tuple(_parameters(document, path, _listed(item), _listed(described)))
    body, body_required = _body(document, method, described)
    return Operation(
        method,
        path,
        _text(described, "operationId"),
        _text(described, "summary"),
        _text(described, "description") or _text(item, "description"),
        parameters,
        body,
        body_required,
        _output(document, described),
        credential_of(document, described),
    )


def _listed(described: Part) -> Sequence[JsonValue]:
    found = described.get("parameters")
    return found if isinstance(found, list) else ()


def _text(described: Part, name: str) -> str:
    value = described.get(name)
    return value.strip()[:_LONGEST] if isinstance(value, str) else ""


def _parameters(document: OpenApiDocument, path: str, *lists: Sequence[JsonValue]) -> Iterator[Parameter]:
    """An operation's own go before those of its path. What the path names and nobody describes is a text."""
    found: dict[tuple[str, str], Part] = {}
    for described in (document.resolved(one) for many in lists for one in many):
        found[str(described.get("name")), str(described.get("in"))] = described
    for name in _names_in(path):
        found.setdefault((name, "path"), {"required": True, "schema": {"type": "string"}})
    for (name, place), described in found.items():
        one = _parameter(name, place, described)
        if one is not None:
            yield one


def _names_in(path: str) -> Iterator[str]:
    for piece in path.split("{")[1:]:
        yield piece.partition("}")[0]


def _parameter(name: str, place: str, described: Part) -> Parameter | None:
    """None for one that is left to whoever sends the request. Raises _NoTool for one that is needed and cannot be sent."""
    required = described.get("required") is True or place == "path"
    if place == "header" and name.lower() in _OWN_HEADERS:
        return None
    reason = _unsendable(name, place, described)
    match place:
        case "path" | "query" | "header" if reason is None:
            schema = described.get("schema", {})
            schema = _not_empty(schema) if place == "path" else _visible(schema) if place == "header" else schema
            return Parameter(name, place, required, schema, _text(described, "description"))
        case _ if required:
            raise _NoTool(reason or f"It needs the {place} parameter {name!r}, which cannot be sent.")
        case _:
            return None


def _not_empty(schema: JsonValue) -> JsonValue:
    """A part of a path cannot be an empty text."""
    if isinstance(schema, dict) and schema.get("type") == "string" and not schema.get("minLength"):
        return {**schema, "minLength": 1}
    return schema


def _visible(schema: JsonValue) -> JsonValue:
    """What can stand in a header; a pattern of its own says more. Of a reference of 3.0 nothing is said beside it."""
    return {"pattern": _IN_HEADER, **schema} if isinstance(schema, dict) else schema


def _unsendable(name: str, place: str, described: Part) -> str | None:
    if "content" in described:
        return f"Its parameter {name!r} is a document of its own within the {place}."
    style = described.get("style")
    if style not in (None, "form", "simple") or (place == "query" and described.get("explode") is False):
        return f"Its parameter {name!r} is written in the style {style or 'form'}, which is not sent here."
    return None


def _body(document: OpenApiDocument, method: HttpMethod, described: Part) -> tuple[JsonValue, bool]:
    """Raises _NoTool for one that is needed and is no JSON."""
    if "requestBody" not in described:
        return None, False
    found = document.resolved(described["requestBody"])
    content = part(found.get("content"))
    required = found.get("required") is True
    schema = _json_schema(content)
    if schema is None or method in ("GET", "DELETE"):
        if required and content:
            kinds = ", ".join(sorted(content)[:5])
            raise _NoTool(
                f"It takes a body of {kinds} only, not JSON." if schema is None else f"A {method} request with a body is not sent."
            )
        return None, False
    return schema, required


def _json_schema(content: Part) -> JsonValue:
    """The schema of the JSON among the media types; None where there is no JSON."""
    for kind, media in content.items():
        name = kind.partition(";")[0].strip().lower()
        if name in ("application/json", "*/*", "application/*") or name.endswith("+json"):
            schema = part(media).get("schema")
            return {} if schema is None else schema
    return None


def _output(document: OpenApiDocument, described: Part) -> JsonValue:
    """Of the answers that mean success; None where they say nothing, or one of them has no body. Raises _NoTool where none is JSON."""
    answers = {code: one for code, one in part(described.get("responses")).items() if code.startswith("2")}
    contents = [part(document.resolved(one).get("content")) for one in answers.values()]
    schemas = [_json_schema(content) for content in contents]
    if contents and all(contents) and all(schema is None for schema in schemas):
        kinds = ", ".join(sorted({kind for content in contents for kind in content})[:5])
        raise _NoTool(f"It answers with {kinds} only, not JSON.")
    known: list[JsonValue] = [schema for schema in schemas if schema is not None]
    if len(known) != len(schemas) or not known:
        return None
    different = list(dict.fromkeys(_shown(schema) for schema in known))
    return known[0] if len(different) == 1 else {"anyOf": known}


def _shown(schema: JsonValue) -> str:
    return repr(schema)[:10_000]
