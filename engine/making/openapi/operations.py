"""Reads the operations of an OpenAPI document that can be tools."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from pydantic import JsonValue

from engine.making.failures import LeftOut
from engine.making.json_values import Part, items, part, texts
from engine.making.openapi.bodies import OperationBody, body_of, json_schema, no_body_in, plain_type
from engine.making.openapi.credentials import Credential, credential_of
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument, server_of
from engine.making.openapi.parameters import NoTool, Parameter, parameters_of, text_of
from engine.runtimes.http.reply import is_text
from toolagent.contracts.sources import HttpMethod

HEALTH_PATHS = frozenset({"/health", "/healthz", "/health/", "/livez", "/readyz", "/ping", "/-/health", "/api/health", "/status/health"})
_METHODS: tuple[HttpMethod, ...] = get_args(HttpMethod)
_NOT_SENT = ("HEAD", "OPTIONS", "TRACE")
_LONGEST_TAG = 200
_TEXT_OR_JSON: JsonValue = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array"}]}
"""The result for a text: JSON if the text is JSON."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`output` is the document's schema; None if there is none.

    `not_sent`: optional inputs that are never sent, with the reasons. `server_url`: its own server, if it has one. `gives_text`: an answer
    may be a text.
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
    gives_text: bool = False

    @property
    def named(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_health(self) -> bool:
        return self.method == "GET" and self.path in HEALTH_PATHS and not any(one.required for one in self.parameters)


@dataclass(frozen=True, slots=True)
class ReadOperations:
    """`health_path` is the path of a health check, which is no tool."""

    operations: tuple[Operation, ...]
    left_out: tuple[LeftOut, ...]
    health_path: str | None = None


def operations_of(document: OpenApiDocument) -> ReadOperations:
    """Reads the operations in the order of the document. Blocks."""
    operations: list[Operation] = []
    left_out: list[LeftOut] = []
    health: str | None = None
    for method, path, item, described in _described(document):
        try:
            if isinstance(item, DocumentRefused):
                raise item
            described = document.resolved(dict(described))
            one = _operation(document, method, path, item, described)
            if not one.is_health:
                operations.append(one)
                continue
            health = health or path
            why = "It tells whether the service works, and is asked for that."
        except (NoTool, DocumentRefused) as reason:
            why = str(reason)
        left_out.append(LeftOut(f"{method} {path}", why, (text_of(described, "operationId"), *_tags(described), path)))
    return ReadOperations(tuple(operations), tuple(left_out), health)


def _described(document: OpenApiDocument) -> Iterator[tuple[str, str, Part | DocumentRefused, Part]]:
    """Method, path, path item and operation, also for methods that are not sent. A path that cannot be read has the refusal as item."""
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
    sent = path.partition("#")[0]
    if "?" in sent:
        # The query of a source can name secrets of this service: a document must not write one.
        raise NoTool("Its path holds a `?`. Describe what stands behind that as parameters in the query.")
    read = list(parameters_of(document, sent, items(item.get("parameters")), items(described.get("parameters"))))
    body = body_of(document, method, described)
    if isinstance(body, str):
        raise NoTool(body)
    contents = _contents(document, described)
    return Operation(
        method,
        path,
        text_of(described, "operationId"),
        text_of(described, "summary"),
        text_of(described, "description") or text_of(item, "description"),
        tuple(one for one in read if isinstance(one, Parameter)),
        body,
        _output(contents),
        credential_of(document, described),
        _tags(described),
        (*(one for one in read if isinstance(one, str)), *filter(None, [no_body_in(document, described, body)])),
        _own_server(document, item, described),
        _TEXT_OR_JSON in map(_schema_of, contents),
    )


def _tags(described: Part) -> tuple[str, ...]:
    return tuple(one[:_LONGEST_TAG] for one in texts(items(described.get("tags"))))


def _own_server(document: OpenApiDocument, item: Part, described: Part) -> str:
    """The server of an operation or its path, if it differs from the document's. Raises NoTool if it cannot be called."""
    own = described.get("servers") or item.get("servers")
    if not own or document.is_served_elsewhere:
        return ""
    url, _ = server_of(own)
    if not url:
        raise NoTool("It is served elsewhere than the others, at no absolute address. Say in the task's `server_url` where all is served.")
    return "" if url == document.server_url else url


def _contents(document: OpenApiDocument, described: Part) -> list[Part]:
    """The contents of the answers that mean success, by media type."""
    answers = [one for code, one in part(described.get("responses")).items() if code.startswith("2")]
    return [part(document.resolved(one).get("content")) for one in answers]


def _output(contents: list[Part]) -> JsonValue:
    """The schema of success; None if the document has none, or an answer has no body. Raises NoTool if no answer is JSON or a text."""
    schemas = [_schema_of(content) for content in contents]
    known: list[JsonValue] = [schema for schema in schemas if schema is not None]
    if contents and all(contents) and not known:
        kinds = ", ".join(sorted({kind for content in contents for kind in content})[:5])
        raise NoTool(f"It answers with {kinds} only, neither JSON nor text.")
    if len(known) != len(schemas) or not known:
        return None
    return known[0] if len({repr(schema)[:10_000] for schema in known}) == 1 else {"anyOf": known}


def _schema_of(content: Part) -> JsonValue:
    if (found := json_schema(content)) is not None:
        return found
    return _TEXT_OR_JSON if any(map(is_text, map(plain_type, content))) else None
