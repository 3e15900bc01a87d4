"""Schemas that refer to themselves."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue

from toolagent.contracts.contract import JsonSchema

AGAIN: JsonSchema = {"$ref": "#/$defs/n"}


def of(node: JsonSchema, **others: JsonValue) -> JsonSchema:
    """A schema whose property `a` is this node, which refers to itself with AGAIN."""
    return {"type": "object", "$defs": {"n": node, **others}, "properties": {"a": AGAIN}}


def chained(length: int) -> JsonSchema:
    """A chain of choices without recursion."""
    links: dict[str, JsonValue] = {
        f"a{index}": {"anyOf": [{"$ref": f"#/$defs/a{index + 1}"}, {"$ref": f"#/$defs/a{index + 1}"}]} for index in range(length)
    }
    return {"$defs": {**links, f"a{length}": {"type": "string"}}, "$ref": "#/$defs/a0"}


def nested(depth: int) -> dict[str, JsonValue]:
    value: JsonValue = "x"
    for _ in range(depth):
        value = [value]
    return {"a": value}


TWICE = of(
    {
        "anyOf": [
            {"type": "array", "items": AGAIN, "minItems": 1},
            {"type": "array", "items": AGAIN, "maxItems": 5},
            {"type": "boolean"},
        ]
    }
)


class Tree(BaseModel):
    name: str
    children: "list[Tree]" = []


class Sum(BaseModel):
    kind: Literal["sum"] = "sum"
    left: "Term"
    right: "Term"


class Product(BaseModel):
    kind: Literal["product"] = "product"
    left: "Term"
    right: "Term"


class Number(BaseModel):
    kind: Literal["number"] = "number"
    value: float


Term = Annotated[Sum | Product | Number, Field(discriminator="kind")]


class Formula(BaseModel):
    term: Term


_JSON: JsonSchema = {"anyOf": [{"type": "object", "additionalProperties": AGAIN}, {"type": "array", "items": AGAIN}, {"type": "string"}]}
_DYNAMIC: JsonSchema = {"$dynamicRef": "#node"}
_OTHERS: list[JsonValue] = [{"properties": {"in": {"minLength": number}}} for number in range(30)]


def _inner(**others: JsonValue) -> JsonSchema:
    return {"properties": {"in": AGAIN, **others}}


USUAL: Mapping[str, JsonSchema] = {
    "any JSON": of(_JSON),
    "a linked list": of({"properties": {"next": {"anyOf": [AGAIN, {"type": "null"}]}}}),
    "a model's tree": Tree.model_json_schema(),
    "a model's expressions": Formula.model_json_schema(),
    "filters by name": of({"anyOf": [{"properties": {"or": {"items": AGAIN}}}, {"properties": {"and": {"items": AGAIN}}}]}),
    "a dynamic reference": {"$dynamicAnchor": "node", "properties": {"inner": {"items": _DYNAMIC}}},
    "a base and what is more": of({"allOf": [{"$ref": "#/$defs/base"}], "properties": {"b": AGAIN}}, base={"properties": {"c": AGAIN}}),
    "a condition with two ends": of(
        {"if": {"required": ["x"]}, "then": {"properties": {"c": AGAIN}}, "else": {"properties": {"c": AGAIN}}}
    ),
    "the schema of schemas": {"properties": {"schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
    "many ways without recursion": {"anyOf": [{"properties": {"x": {"const": number}}} for number in range(300)]},
}

REFUSED: Mapping[str, tuple[JsonSchema, str]] = {
    "two branches": (TWICE, "$.$defs.n.anyOf[0].items"),
    "allOf": (of({"allOf": [{"items": AGAIN}, {"items": AGAIN}]}), "$.$defs.n.allOf[0].items"),
    "beside a reference": (
        of({"$ref": "#/$defs/m", "properties": {"x": AGAIN}}, m={"properties": {"x": AGAIN}}),
        "$.$defs.m.properties.x",
    ),
    "by way of others": (
        of({"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/c"}]}, b={"items": AGAIN}, c={"items": {"oneOf": [AGAIN]}}),
        "$.$defs.c.items",
    ),
    "not": (of({"not": {"items": AGAIN}, "items": AGAIN}), "$.$defs.n.items"),
    "contains": (of({"items": AGAIN, "contains": AGAIN}), "$.$defs.n.contains"),
    "a pattern and a name": (of({"patternProperties": {"^a": AGAIN}, "properties": {"ab": AGAIN}}), "$.$defs.n.patternProperties.^a"),
    "a name and all others": (
        of({"anyOf": [{"additionalProperties": AGAIN}, {"properties": {"x": AGAIN}}]}),
        "$.$defs.n.anyOf[0].additionalProperties",
    ),
    "a condition and its end": (of({"if": {"items": AGAIN}, "then": {"items": AGAIN}}), "$.$defs.n.if.items"),
    "dependent schemas": (
        of({"dependentSchemas": {"d": {"properties": {"c": AGAIN}}}, "properties": {"c": AGAIN}}),
        "$.$defs.n.dependentSchemas.d.properties.c",
    ),
    "a dynamic reference": (
        {"$dynamicAnchor": "node", "anyOf": [{"items": _DYNAMIC}, {"items": _DYNAMIC, "minItems": 1}]},
        "$.anyOf[0].items",
    ),
    "a chain of choices": (chained(30), "$"),
    "many branches": (of({"anyOf": [_inner() for _ in range(200)]}), "$.$defs.n.anyOf[0].properties.in"),
    "two branches among others": (of({"anyOf": [_inner(), _inner()], "allOf": _OTHERS}), "$.$defs.n.anyOf[0].properties.in"),
    "one branch and a base among others": (
        of({"oneOf": [_inner(kind={"const": number}) for number in range(20)], "allOf": [_inner(), *_OTHERS]}),
        "$.$defs.n.allOf[0].properties.in",
    ),
}
