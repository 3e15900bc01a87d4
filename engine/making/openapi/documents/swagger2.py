"""Converts a document of Swagger 2 to OpenAPI 3.0.

Schemas stay in place, so that references still find them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from pydantic import JsonValue

from engine.making.json_values import Part, items, part, texts

Object: TypeAlias = dict[str, JsonValue]
Resolve: TypeAlias = Callable[[str], JsonValue]
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_OF_A_PARAMETER = frozenset({"name", "in", "description", "required", "allowEmptyValue", "collectionFormat", "schema"})
_STYLES: Mapping[str, Object] = {
    "csv": {"explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "multi": {"explode": True},
}
_FLOWS = {"accessCode": "authorizationCode", "application": "clientCredentials", "implicit": "implicit", "password": "password"}
_FORM, _MULTIPART, _JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
_MOST_STEPS = 20


def as_openapi_3(root: Mapping[str, JsonValue], resolve: Resolve) -> Object:
    """`resolve` returns the target of a reference within the document, and raises for any other."""
    paths = {path: _path(root, item, resolve) for path, item in part(root.get("paths")).items() if isinstance(item, dict)}
    schemes = {name: _scheme(part(one)) for name, one in part(root.get("securityDefinitions")).items()}
    kept = {key: value for key, value in root.items() if key not in ("swagger", "host", "basePath", "schemes", "parameters", "responses")}
    servers: JsonValue = [{"url": url} for url in _servers(root)]
    own: Object = {"openapi": "3.0.3", "servers": servers, "components": {"securitySchemes": schemes}}
    return {**kept, **own, "paths": paths} if isinstance(root.get("paths"), dict) else {**kept, **own}


def _servers(root: Mapping[str, JsonValue]) -> Iterator[str]:
    base, host = str(root.get("basePath") or ""), root.get("host")
    if not isinstance(host, str) or not host:
        yield base
        return
    named = [one for one in texts(items(root.get("schemes"))) if one in ("https", "http")]
    yield from (f"{scheme}://{host}{base}" for scheme in sorted(named, reverse=True) or ["https"])


def _path(root: Mapping[str, JsonValue], item: Object, resolve: Resolve) -> JsonValue:
    if "$ref" in item:
        return item
    shared = items(item.get("parameters"))
    found: Object = {key: value for key, value in item.items() if key not in ("parameters", *_METHODS)}
    for method in _METHODS:
        if isinstance(described := item.get(method), dict):
            found[method] = _operation(root, shared, described, resolve)
    return found


def _operation(root: Mapping[str, JsonValue], shared: Sequence[JsonValue], described: Object, resolve: Resolve) -> Object:
    try:
        named: dict[tuple[str, str], Part] = {}
        for one in (_resolved(one, resolve) for one in (*shared, *items(described.get("parameters")))):
            named[str(one.get("name")), str(one.get("in"))] = one
        answers = {code: _resolved(one, resolve) for code, one in part(described.get("responses")).items()}
    except ValueError as reason:
        # Reading the operation reports what is wrong with the reference.
        return {**described, "parameters": [{"$ref": str(reason)}]}
    responses: Object = {code: _response(root, described, one) for code, one in answers.items()}
    parameters = [one for (_, place), one in named.items() if place not in ("body", "formData")]
    body = _body(root, described, [one for (_, place), one in named.items() if place in ("body", "formData")])
    kept = {key: value for key, value in described.items() if key not in ("parameters", "responses", "consumes", "produces", "schemes")}
    return {**kept, "parameters": [_parameter(one) for one in parameters], "responses": responses, **body}


def _resolved(value: JsonValue, resolve: Resolve) -> Part:
    """Raises ValueError with a reference that leads nowhere."""
    for _ in range(_MOST_STEPS):
        found = part(value)
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return found
        try:
            value = resolve(reference)
        except ValueError:
            raise ValueError(reference) from None
    raise ValueError("#/it/refers/to/itself")


def _parameter(one: Part) -> JsonValue:
    kept = {key: value for key, value in one.items() if key in _OF_A_PARAMETER and key != "collectionFormat"}
    style = _STYLES.get(str(one.get("collectionFormat", "csv")), {"style": "tsv"}) if one.get("type") == "array" else {}
    if one.get("in") in ("path", "header"):
        style = {}
    return {**kept, "schema": _schema(one), **style}


def _schema(one: Part) -> Object:
    """The schema of a parameter, from its own keys."""
    found = {key: value for key, value in one.items() if key not in _OF_A_PARAMETER}
    return {**found, "type": "string", "format": "binary"} if one.get("type") == "file" else found


def _body(root: Mapping[str, JsonValue], described: Object, parameters: Sequence[Part]) -> Object:
    if not parameters:
        return {}
    consumes = [str(one) for one in items(described.get("consumes", root.get("consumes")))]
    whole = next((one for one in parameters if one.get("in") == "body"), None)
    if whole is not None:
        media: Object = {"schema": whole.get("schema", {})}
        content: Object = {kind: media for kind in consumes or [_JSON]}
        return {"requestBody": {"content": content, "required": whole.get("required") is True}}
    properties: Object = {str(one.get("name")): {**_schema(one), **_kept(one, "description")} for one in parameters}
    required: list[JsonValue] = [str(one.get("name")) for one in parameters if one.get("required") is True]
    schema: Object = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    has_file = any(one.get("type") == "file" for one in parameters)
    kind = _MULTIPART if has_file or (_MULTIPART in consumes and _FORM not in consumes) else _FORM
    return {"requestBody": {"content": {kind: {"schema": schema}}, "required": bool(required)}}


def _kept(one: Part, *keys: str) -> Object:
    return {key: one[key] for key in keys if key in one}


def _response(root: Mapping[str, JsonValue], described: Object, response: Part) -> JsonValue:
    kept: Object = {key: value for key, value in response.items() if key not in ("schema", "examples", "headers")}
    if "schema" not in response:
        return kept
    produces = [str(one) for one in items(described.get("produces", root.get("produces")))] or [_JSON]
    return {**kept, "content": {kind: {"schema": response["schema"]} for kind in produces}}


def _scheme(one: Part) -> JsonValue:
    match one.get("type"):
        case "basic":
            return {"type": "http", "scheme": "basic"}
        case "oauth2":
            flow = _kept(one, "tokenUrl", "authorizationUrl", "scopes")
            return {"type": "oauth2", "flows": {_FLOWS.get(str(one.get("flow")), "implicit"): flow}}
        case _:
            return {**one}
