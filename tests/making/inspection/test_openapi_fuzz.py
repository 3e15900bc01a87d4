"""Any document is read or refused, and never causes an unforeseen error."""

import copy
import json
from collections.abc import Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.sources import local_sources, remote_sources
from engine.making.openapi.tools import BuildFailed, Described, draft

WHOLE: JsonValue = {
    "openapi": "3.0.3",
    "info": {"title": "T"},
    "servers": [{"url": "https://{a}.example.com", "variables": {"a": {"default": "x"}}}],
    "security": [{"k": []}],
    "components": {
        "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "schemas": {"S": {"type": "object", "nullable": True, "required": ["a"], "properties": {"a": {"$ref": "#/components/schemas/S"}}}},
    },
    "paths": {
        "/x/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "post": {
                "operationId": "a",
                "summary": "s",
                "parameters": [{"name": "q", "in": "query", "schema": {"type": "integer", "minimum": 1, "exclusiveMinimum": True}}],
                "requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}}},
                "responses": {"200": {"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/S"}]}}}}},
            },
        }
    },
}
ODD: st.SearchStrategy[JsonValue] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "\0", "/", "#/", "#/paths", "#/components/schemas/S", "é", [], [[]], [None], [1], {}, {"": {}},
     {"$ref": 3}, {"$ref": "#/components/schemas/S"}, {"type": 3}, {"type": "nonsense"}, {"properties": []},
     {"required": "a"}, "x" * 300]
)  # fmt: skip


def places(value: JsonValue, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    match value:
        case dict():
            for key, inner in value.items():
                yield (*path, key)
                yield from places(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield (*path, index)
                yield from places(inner, (*path, index))
        case _:
            return


PLACES = tuple(places(WHOLE))


def changed(document: JsonValue, path: tuple[str | int, ...], odd: JsonValue) -> None:
    """Make one change in the document; none if an earlier change has removed its place."""
    for step in path[:-1]:
        match document, step:
            case dict(), str() if step in document:
                document = document[step]
            case list(), int() if step < len(document):
                document = document[step]
            case _:
                return
    match document, path[-1]:
        case dict(), str(key):
            document[key] = odd
        case list(), int(index) if index < len(document):
            document[index] = odd
        case _:
            return


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=3))
def test_a_document_with_odd_parts_is_read_or_refused(changes: list[tuple[tuple[str | int, ...], JsonValue]]) -> None:
    document = copy.deepcopy(WHOLE)
    for path, odd in changes:
        changed(document, path, copy.deepcopy(odd))
    try:
        read = OpenApiDocument.read(json.dumps(document), is_json=True)
        for sources in (local_sources(read, "tools/x"), remote_sources(read, "x")):
            drafted = draft(read, Described("x"), sources)
            assert drafted.candidate.entries
    except (DocumentRefused, BuildFailed):
        return
