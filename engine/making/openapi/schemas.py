"""Converts schemas of an OpenAPI document to self-contained JSON Schemas: the targets of references become `$defs`."""

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import JsonValue

from engine.making.json_values import Part, part, texts
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.unused_names import unused
from toolagent.contracts.contract import JsonSchema

_MAX_PARTS = 10_000
_MAX_DEPTH = 60
_ONE = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else", "unevaluatedProperties"})
_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_DROPPED = frozenset(
    {
        "discriminator",
        "xml",
        "externalDocs",
        "example",
        "nullable",
        "deprecated",
        "$schema",
        "$id",
        "$anchor",
        "$comment",
        "$recursiveAnchor",
        "$recursiveRef",
    }
)
_LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class Schemas:
    """Converts the schemas of one tool's input or output. `definitions` collects the targets of references.

    What the keyword `absent` marks is not required: `readOnly` in a request, `writeOnly` in an answer.
    """

    def __init__(self, document: OpenApiDocument, absent: Literal["readOnly", "writeOnly"]) -> None:
        self.document, self._absent = document, absent
        self._left = _MAX_PARTS
        self._names: dict[str, str] = {}
        self.definitions: dict[str, JsonValue] = {}

    def alone(self, schema: JsonSchema) -> JsonSchema:
        """A converted schema with the definitions so far."""
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def converted(self, value: JsonValue, depth: int = 0) -> JsonSchema:
        """The schema as JSON Schema 2020-12. Raises DocumentRefused if it is too large, or refers to another document."""
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            raise DocumentRefused(f"The schema is larger than {_MAX_PARTS} parts, or deeper than {_MAX_DEPTH}.")
        schema = part(value)
        found: JsonSchema = {}
        for key, inner in schema.items():
            if key == "$ref" and isinstance(inner, str):
                found[key] = self._reference(inner, depth)
            elif key in _NAMED:
                found[key] = {name: self._inner(one, depth) for name, one in part(inner).items()}
            elif key in _ONE:
                found[key] = self._inner(inner, depth)
            elif key in _LIST and isinstance(inner, list):
                found[key] = [self._inner(one, depth) for one in inner]
            elif key not in _DROPPED and not key.startswith("x-"):
                found[key] = inner
        return self._settled(found, schema)

    def _settled(self, found: JsonSchema, schema: Part) -> JsonSchema:
        if "$ref" in found and not self.document.is_31:
            # OpenAPI 3.0 ignores keywords beside a reference.
            return {"$ref": found["$ref"]}
        if "discriminator" in schema and "anyOf" not in found and "oneOf" in found:
            # A field tells the branches apart. By their schemas alone several may fit, which `oneOf` refuses.
            found["anyOf"] = found.pop("oneOf")
        if isinstance(names := found.get("required"), list):
            properties = part(schema.get("properties"))
            found["required"] = [one for one in dict.fromkeys(texts(names)) if not self._is_absent(properties.get(one))]
        return _as_31(found, schema)

    def _is_absent(self, value: JsonValue) -> bool:
        beside = self.document.is_31 and part(value).get(self._absent) is True
        return beside or self.document.resolved(value).get(self._absent) is True

    def _inner(self, value: JsonValue, depth: int) -> JsonValue:
        return value if isinstance(value, bool) else self.converted(value, depth + 1)

    def _reference(self, reference: str, depth: int) -> str:
        if reference not in self._names:
            target = self.document.at(reference)
            name = unused(_NOT_A_NAME.sub("_", reference.rpartition("/")[2])[:100] or "schema", self._names.values())
            self._names[reference] = name
            # Named before it is converted, so that a circular reference ends here.
            self.definitions[name] = {}
            self.definitions[name] = self._inner(target, depth)
        return f"#/$defs/{self._names[reference]}"


def _as_31(found: JsonSchema, schema: Part) -> JsonSchema:
    """Converts `nullable` (in Swagger 2 `x-nullable`) and boolean exclusive limits of OpenAPI 3.0, which documents of 3.1 have too."""
    for excluded, limit in _LIMITS.items():
        match found.get(excluded):
            case True if limit in found:
                found[excluded] = found.pop(limit)
            case bool():
                del found[excluded]
            case _:
                pass
    return _nullable(found) if schema.get("nullable") is True or schema.get("x-nullable") is True else found


def _nullable(found: Mapping[str, JsonValue]) -> JsonSchema:
    kind = found.get("type")
    if not isinstance(kind, str):
        return {"anyOf": [dict(found), {"type": "null"}]} if "type" not in found and found else dict(found)
    values = found.get("enum")
    more: JsonSchema = {"enum": [*values, None]} if isinstance(values, list) and None not in values else {}
    return {**found, "type": [kind, "null"], **more}
