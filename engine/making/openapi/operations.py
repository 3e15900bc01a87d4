"""The operations of an OpenAPI document that can be tools: what they take, what they give, how they are called."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from pydantic import JsonValue

from engine.making.failures import LeftOut
from engine.making.openapi.bodies import OperationBody, body_of, json_schema, no_body_in
from engine.making.openapi.credentials import Credential, credential_of
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument, Part, part, server_of
from engine.making.openapi.parameters import NoTool, Parameter, parameters_of, text_of
from toolagent.contracts.sources import HttpMethod

HEALTH_PATHS = frozenset({"/health", "/healthz", "/health/", "/livez", "/readyz", "/ping", "/-/health", "/api/health", "/status/health"})
_METHODS: tuple[HttpMethod, ...] = get_args(HttpMethod)
_NOT_SENT = ("HEAD", "OPTIONS", "TRACE")
_LONGEST_TAG = 200
_TEXT_OR_JSON: JsonValue = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array"}]}
"""What our launchers give of a text: where it is JSON, that."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`output` is a schema as the document has it; None: nothing is said of it.

    `not_sent`: what it could be given too and never is, with why. `server_url`: where it is served, if not where the others are.
    """

    method: HttpMethod
    path: str
    operation_id: str
    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    body: OperationBody
    output: JsonValue
    credential: Credential | None
    tags: tuple[str, ...] = ()
    not_sent: tuple[str, ...] = ()
    server_url: str = ""

    @property
    def named(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_health(self) -> bool:
        return self.method == "GET" and self.path in HEALTH_PATHS and not any(one.required for one in self.parameters)


@dataclass(frozen=True, slots=True)
class ReadOperations:
    """`health_path` is that of an operation that tells whether the service works, which is no tool."""

    operations: tuple[Operation, ...]
    left_out: tuple[LeftOut, ...]
    health_path: str | None = None


def operations_of(document: OpenApiDocument) -> ReadOperations:
    """In the order of the document. Blocks."""
    operations: list[Operation] = []
    left_out: list[LeftOut] = []
    health: str | None = None
    for method, path, item, described in _described(document):
        names = (text_of(described, "operationId"), *_tags(described), path)
        try:
            if isinstance(item, DocumentRefused):
                raise item
            one = _operation(document, method, path, item, described)
        except (NoTool, DocumentRefused) as reason:
            left_out.append(LeftOut(f"{method} {path}", str(reason), names))
            continue
        if one.is_health:
            health = health or path
            left_out.append(LeftOut(f"{method} {path}", "It tells whether the service works, and is asked for that.", names))
        else:
            operations.append(one)
    return ReadOperations(tuple(operations), tuple(left_out), health)


def _described(document: OpenApiDocument) -> Iterator[tuple[str, str, Part | DocumentRefused, Part]]:
    """Of a path that cannot be read why; methods that are not sent are told of too."""
    for path, value in part(document.root.get("paths")).items():
        try:
            item = document.resolved(value)
        except DocumentRefused as refusal:
            yield "*", path, refusal, {}
            continue
        for method in (*_METHODS, *_NOT_SENT):
            if isinstance(described := item.get(method.lower()), dict):
                yield method, path, item, described


def _operation(document: OpenApiDocument, named: str, path: str, item: Part, described: Part) -> Operation:
    method: HttpMethod | None = next((one for one in _METHODS if one == named), None)
    if method is None:
        raise NoTool(f"{named} requests are not sent.")
    if not path.startswith("/"):
        raise NoTool("Its path does not begin with a slash.")
    if "?" in path or "#" in path:
        # In the query of a source the names of our secrets mean what they are: a document must not write one.
        raise NoTool("Its path holds a `?` or `#`. Describe what stands behind that as parameters in the query.")
    read = list(parameters_of(document, path, _listed(item), _listed(described)))
    body = body_of(document, method, described)
    if isinstance(body, str):
        raise NoTool(body)
    return Operation(
        method,
        path,
        text_of(described, "operationId"),
        text_of(described, "summary"),
        text_of(described, "description") or text_of(item, "description"),
        tuple(one for one in read if isinstance(one, Parameter)),
        body,
        _output(document, described),
        credential_of(document, described),
        _tags(described),
        tuple(one for one in (*(one for one in read if isinstance(one, str)), no_body_in(document, described, body)) if one),
        _own_server(document, item, described),
    )


def _tags(described: Part) -> tuple[str, ...]:
    found = described.get("tags")
    return tuple(one[:_LONGEST_TAG] for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def _own_server(document: OpenApiDocument, item: Part, described: Part) -> str:
    """The address that an operation or its path names for itself. Raises NoTool for one that cannot be called."""
    own = described.get("servers") or item.get("servers")
    if not own or document.is_served_elsewhere:
        return ""
    url, _ = server_of(own)
    if not url:
        raise NoTool("It is served elsewhere than the others, at no absolute address. Say in the task's `server_url` where all is served.")
    return "" if url == document.server_url else url


def _listed(described: Part) -> Sequence[JsonValue]:
    found = described.get("parameters")
    return found if isinstance(found, list) else ()


def _output(document: OpenApiDocument, described: Part) -> JsonValue:
    """Of the answers that mean success; None where they say nothing, or one of them has no body. Raises NoTool where none is JSON."""
    answers = {code: one for code, one in part(described.get("responses")).items() if code.startswith("2")}
    contents = [part(document.resolved(one).get("content")) for one in answers.values()]
    schemas = [_schema_of(document, content) for content in contents]
    if contents and all(contents) and all(schema is None for schema in schemas):
        kinds = ", ".join(sorted({kind for content in contents for kind in content})[:5])
        raise NoTool(f"It answers with {kinds} only, not JSON.")
    known: list[JsonValue] = [schema for schema in schemas if schema is not None]
    if len(known) != len(schemas) or not known:
        return None
    different = list(dict.fromkeys(repr(schema)[:10_000] for schema in known))
    return known[0] if len(different) == 1 else {"anyOf": known}


def _schema_of(document: OpenApiDocument, content: Part) -> JsonValue:
    if (found := json_schema(content)) is not None or not document.gives_text:
        return found
    return _TEXT_OR_JSON if any(_is_text(kind.partition(";")[0].strip().lower()) for kind in content) else None


def _is_text(kind: str) -> bool:
    """The rule of the facades of our launchers."""
    return (kind.startswith("text/") and kind != "text/event-stream") or kind == "application/xml" or kind.endswith("+xml")
