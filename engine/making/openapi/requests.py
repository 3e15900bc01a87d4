"""The parameters of a tool, and how they become a request to its operation."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from engine.making.json_values import Part, items, part, texts
from engine.making.openapi.bodies import OperationBody, branches_of, is_file
from engine.making.openapi.documents.document import OpenApiDocument
from engine.making.openapi.operations import Operation
from engine.making.openapi.parameters import Parameter
from engine.making.openapi.schemas import Schemas
from engine.making.openapi.unused_names import unused
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.sources import BodyEncoding, ParameterStyle
from toolagent.core.schemas import FILE_PATH

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")
_COMPOSED = frozenset({"oneOf", "anyOf", "allOf", "not", "if", "patternProperties", "propertyNames", "minProperties", "maxProperties"})


@dataclass(slots=True)
class RequestShape:
    """The fields of a source that describe the request, and the schema of the parameters. `path` has the parameters' names in it."""

    path: str
    schema: JsonSchema
    query: list[str] = field(default_factory=list[str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: str | None = None
    styles: dict[str, ParameterStyle] = field(default_factory=dict[str, ParameterStyle])
    encoding: BodyEncoding = "json"
    media_type: str = ""
    files: tuple[str, ...] = ()


def request_shape(document: OpenApiDocument, operation: Operation) -> RequestShape:
    """Raises DocumentRefused for a schema that cannot be used. Blocks."""
    schemas = Schemas(document, "readOnly")
    properties: dict[str, JsonValue] = {}
    required: list[str] = []
    # A `#` and what follows it tells operations of one path apart, and is not sent.
    shape = RequestShape(operation.path.partition("#")[0], {})
    given = _with_files(document, operation, shape)
    # DELETE sends parameters in the query unless one is the body.
    body = _body_properties(document, given) if operation.method != "DELETE" else None
    taken = {one.name for one in operation.parameters if one.place == "query"} | set(body or ())
    for parameter, name in _named(operation.parameters, taken):
        properties[name] = _described(schemas, parameter)
        if parameter.required:
            required.append(name)
        if parameter.style is not None:
            shape.styles[name] = parameter.style
        match parameter.place:
            case "path":
                shape.path = shape.path.replace(f"{{{parameter.name}}}", f"{{{name}}}")
            case "query":
                shape.query.append(name)
            case "header":
                shape.headers[name] = parameter.name
    shape.schema = {"type": "object", "properties": properties, "additionalProperties": False}
    _add_body(schemas, given, shape, body, required)
    if required:
        shape.schema["required"] = [*required]
    shape.schema = schemas.alone(shape.schema)
    return shape


def _with_files(document: OpenApiDocument, operation: Operation, shape: RequestShape) -> OperationBody:
    """The body as a call gives it: the name of a file in place of its content."""
    body = operation.body
    # Requests that never have a body need no encoding `none`.
    shape.encoding = "json" if operation.method in ("GET", "DELETE") and body.encoding == "none" else body.encoding
    shape.media_type = body.media_type
    match body.encoding:
        case "json" | "none":
            return body
        case "octets":
            shape.files = ("file",)
            return replace(body, schema=_file({"description": f"The file that is sent, as {body.media_type}."}))
        case "form" | "multipart":
            whole = document.resolved(body.schema)
            fields = part(whole.get("properties"))
            shape.styles |= {name: style for name in fields if (style := _style(part(body.encodings.get(name))))}
            if body.encoding == "form":
                return body
            shape.files = tuple(name for name, one in fields.items() if is_file(document, one))
            named: dict[str, JsonValue] = {name: _named_file(document, one) if name in shape.files else one for name, one in fields.items()}
            return replace(body, schema={**whole, "properties": named}) if shape.files else body


def _style(encoding: Part) -> ParameterStyle | None:
    """The style of a form field."""
    match encoding:
        case {"style": "deepObject"}:
            return "deep"
        case {"explode": False}:
            return "comma"
        case {"contentType": "application/json"}:
            return "json"
        case _:
            return None


def _named_file(document: OpenApiDocument, schema: JsonValue) -> JsonValue:
    whole = document.resolved(schema)
    if branches := branches_of(document, whole):
        kept = {key: whole[key] for key in ("description", "title") if key in whole}
        return {**kept, "anyOf": [{"type": "null"} if one.get("type") == "null" else _content(one) for one in branches]}
    return _content(whole)


def _content(whole: Part) -> JsonValue:
    if whole.get("type") == "array":
        kept = {key: whole[key] for key in ("description", "minItems", "maxItems") if key in whole}
        return {**kept, "type": "array", "items": _file({})}
    return _file(whole)


def _file(said: Part) -> JsonValue:
    return {"type": "string", "format": FILE_PATH, **{key: said[key] for key in ("description", "title") if key in said}}


def _add_body(schemas: Schemas, body: OperationBody, shape: RequestShape, spread: Part | None, required: list[str]) -> None:
    properties = shape.schema["properties"]
    if body.schema is None or not isinstance(properties, dict):
        return
    if spread is None or properties.keys() & spread.keys():
        wanted_names = ("file", "body_file", "whole_file") if body.encoding == "octets" else ("body", "request_body", "whole_body")
        name = next(name for name in wanted_names if name not in properties)
        properties[name] = schemas.converted(body.schema)
        shape.body = name
        shape.files = (name,) if body.encoding == "octets" else shape.files
        required += [name] if body.required else []
        return
    whole = schemas.converted(dict(schemas.document.resolved(body.schema)))
    properties |= part(whole.get("properties"))
    required += [name for name in texts(items(whole.get("required"))) if name in properties]
    more = whole.get("additionalProperties")
    if more is not None and len(properties) == len(spread):
        shape.schema["additionalProperties"] = more


def _body_properties(document: OpenApiDocument, given: OperationBody) -> Part | None:
    """The body's properties if they can be parameters of the tool; None if the body is one parameter."""
    body = document.resolved(given.schema)
    properties = body.get("properties")
    is_plain = isinstance(properties, dict) and body.get("type", "object") == "object" and not _COMPOSED & body.keys()
    is_whole = given.required or not body.get("required")
    free = {name: one for name, one in part(properties).items() if part(one).get("readOnly") is not True}
    return free if is_plain and is_whole and len(free) == len(part(properties)) else None


def _described(schemas: Schemas, parameter: Parameter) -> JsonValue:
    schema = schemas.converted(parameter.schema)
    return {**schema, "description": parameter.description} if parameter.description else schema


def _named(parameters: tuple[Parameter, ...], taken: set[str]) -> Iterator[tuple[Parameter, str]]:
    """Each parameter with a unique name; names in the query and the body cannot change."""
    used = set(taken)
    for one in parameters:
        if one.place == "query":
            yield one, one.name
            continue
        plain = one.name if one.place == "path" else _NOT_IN_A_NAME.sub("_", one.name).strip("_").lower()
        name = plain if plain not in used else unused(f"{one.place}_{plain}", used)
        used.add(name)
        yield one, name
