"""How the parameters of a tool become a request to its operation, and which parameters those are."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from engine.making.openapi.document import OpenApiDocument, Part, part
from engine.making.openapi.operations import Operation, Parameter
from engine.making.openapi.schemas import Schemas
from toolagent.contracts.manifest import JsonSchema

__all__ = ["RequestShape", "request_shape"]

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")
_COMPOSED = frozenset({"oneOf", "anyOf", "allOf", "not", "if", "patternProperties", "propertyNames", "minProperties", "maxProperties"})


@dataclass(slots=True)
class RequestShape:
    """The fields of a source that say it, and the schema of the parameters. `path` has the parameters' own names in it."""

    path: str
    schema: JsonSchema
    query: list[str] = field(default_factory=list[str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: str | None = None


def request_shape(document: OpenApiDocument, operation: Operation) -> RequestShape:
    """Raises DocumentRefused for a schema that cannot be used. Blocks."""
    schemas = Schemas(document)
    properties: dict[str, JsonValue] = {}
    required: list[str] = []
    shape = RequestShape(operation.path, {})
    body = _body_properties(document, operation)
    taken = {one.name for one in operation.parameters if one.place == "query"} | set(body or ())
    for parameter, name in _named(operation.parameters, taken):
        properties[name] = _described(schemas, parameter)
        if parameter.required:
            required.append(name)
        match parameter.place:
            case "path":
                shape.path = shape.path.replace(f"{{{parameter.name}}}", f"{{{name}}}")
            case "query":
                shape.query.append(name)
            case "header":
                shape.headers[name] = parameter.name
    shape.schema = {"type": "object", "properties": properties, "additionalProperties": False}
    _add_body(schemas, operation, shape, body, required)
    if required:
        shape.schema["required"] = [*required]
    shape.schema = schemas.alone(shape.schema)
    return shape


def _add_body(schemas: Schemas, operation: Operation, shape: RequestShape, spread: Part | None, required: list[str]) -> None:
    properties = shape.schema["properties"]
    if operation.body is None or not isinstance(properties, dict):
        return
    if spread is None or properties.keys() & spread.keys():
        name = next(name for name in ("body", "request_body", "whole_body") if name not in properties)
        properties[name] = schemas.converted(operation.body)
        shape.body = name
        required += [name] if operation.body_required else []
        return
    whole = schemas.converted(_resolved_body(schemas, operation))
    found = whole.get("properties")
    properties |= found if isinstance(found, dict) else {}
    wanted = whole.get("required")
    required += [name for name in wanted if isinstance(name, str) and name in properties] if isinstance(wanted, list) else []
    more = whole.get("additionalProperties")
    if more is not None and len(properties) == len(spread):
        shape.schema["additionalProperties"] = more


def _body_properties(document: OpenApiDocument, operation: Operation) -> Part | None:
    """The properties that may stand beside the other parameters; None where the body is to be given as one."""
    body = document.resolved(operation.body)
    properties = body.get("properties")
    is_plain = isinstance(properties, dict) and body.get("type", "object") == "object" and not _COMPOSED & body.keys()
    is_whole = operation.body_required or not body.get("required")
    free = {name: one for name, one in part(properties).items() if part(one).get("readOnly") is not True}
    return free if is_plain and is_whole and len(free) == len(part(properties)) else None


def _resolved_body(schemas: Schemas, operation: Operation) -> JsonValue:
    return dict(schemas.document.resolved(operation.body))


def _described(schemas: Schemas, parameter: Parameter) -> JsonValue:
    schema = schemas.converted(parameter.schema)
    return {**schema, "description": parameter.description} if parameter.description else schema


def _named(parameters: tuple[Parameter, ...], taken: set[str]) -> Iterator[tuple[Parameter, str]]:
    """Each with a name of its own; those of the query and of the body cannot be changed."""
    used = set(taken)
    for one in parameters:
        if one.place == "query":
            yield one, one.name
            continue
        plain = one.name if one.place == "path" else _NOT_IN_A_NAME.sub("_", one.name).strip("_").lower()
        name = (
            plain
            if plain not in used
            else next(
                found for number in range(1, 1_000) if (found := f"{one.place}_{plain}" + ("" if number == 1 else f"_{number}")) not in used
            )
        )
        used.add(name)
        yield one, name
