"""Schemas with resolved references, and references that cannot be resolved."""

import json

import pytest

from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.contract import JsonSchema

FILE: JsonSchema = {"type": "string", "format": "file-path"}
TREE: JsonSchema = {"type": "object", "properties": {"children": {"items": {"$ref": "#/$defs/tree"}}}}


def test_a_reference_is_replaced_and_the_order_of_keys_stays() -> None:
    schema: JsonSchema = {"properties": {"z": {"$ref": "#/$defs/f"}, "default": {"$ref": "#/$defs/f"}, "a": {}}, "$defs": {"f": FILE}}
    written = written_out(schema)
    assert written == {"properties": {"z": FILE, "default": FILE, "a": {}}}
    assert json.dumps(written) == json.dumps({"properties": {"z": FILE, "default": FILE, "a": {}}})


def test_a_reference_to_a_reference_is_replaced() -> None:
    assert written_out({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/b~1c"}}, "b/c": FILE}}) == {"items": FILE}


def test_what_stands_beside_a_reference_still_counts() -> None:
    definitions: JsonSchema = {"base": {"properties": {"file": FILE}, "description": "old"}}
    described: JsonSchema = {"$ref": "#/$defs/base", "description": "new"}
    assert written_out({"items": described, "$defs": definitions})["items"] == {"properties": {"file": FILE}, "description": "new"}
    extended: JsonSchema = {"$ref": "#/$defs/base", "properties": {"more": {}}}
    assert written_out({"items": extended, "$defs": definitions})["items"] == {
        "properties": {"more": {}},
        "allOf": [definitions["base"]],
    }


def test_a_schema_without_references_is_not_touched() -> None:
    schema: JsonSchema = {"properties": {"x": {"not": {"type": "null"}, "const": FILE}}, "$defs": {"unused": FILE}}
    assert written_out(schema) is schema or written_out(schema) == schema


def test_a_schema_that_contains_itself_may_stay_when_nothing_special_is_in_it() -> None:
    written = written_out({"$ref": "#/$defs/tree", "$defs": {"tree": TREE, "other": FILE}})
    assert written["properties"] == TREE["properties"]
    assert written["$defs"] == {"tree": TREE, "other": FILE}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/tree", "$defs": {"tree": {"properties": {"file": FILE, "children": {"items": {"$ref": "#/$defs/tree"}}}}}},
        {"properties": {"key": {"writeOnly": True}, "inner": {"$ref": "#"}}},
        {"properties": {"x": {"$ref": "#anchor"}}, "$defs": {"x": {"$anchor": "anchor", "format": "password"}}},
        {"properties": {"x": {"$id": "inner", "$ref": "#/$defs/x", "$defs": {"x": FILE}}}},
        {"properties": {"x": {"not": FILE}}},
        {"contains": {"allOf": [{"writeOnly": True}]}},
        {"unevaluatedProperties": {"format": "password"}},
        {"unevaluatedItems": FILE},
        {"propertyNames": FILE},
    ],
)
def test_a_file_or_secret_that_cannot_be_followed_is_refused(schema: JsonSchema) -> None:
    with pytest.raises(SchemaNotFollowedError):
        written_out(schema)


def test_a_schema_that_grows_without_bound_or_is_very_deep_is_refused() -> None:
    definitions: JsonSchema = {}
    for step in range(8):
        definitions[f"d{step}"] = {"prefixItems": [{"$ref": f"#/$defs/d{step + 1}"} for _ in range(10)]}
    with pytest.raises(SchemaNotFollowedError):
        written_out({"$ref": "#/$defs/d0", "$defs": {**definitions, "d8": {}}})
    deep: JsonSchema = {}
    for _ in range(2000):
        deep = {"items": deep}
    with pytest.raises(SchemaNotFollowedError):
        written_out(deep)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/tree", "$defs": {"tree": TREE}},
        {"allOf": [{"$ref": "#/$defs/tree"}, {"properties": {"more": {"$ref": "#/$defs/tree"}}}], "$defs": {"tree": TREE}},
        {
            "properties": {"filter": {"$ref": "#/$defs/any"}},
            "$defs": {"any": {"anyOf": [TREE, {"not": {"$ref": "#/$defs/any"}}]}, "tree": TREE},
        },
        {"properties": {"inner": {"$ref": "#"}, "again": {"items": {"$ref": "#/properties/inner"}}}},
        {
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}},
        },
    ],
)
def test_what_is_written_out_stays_as_it_is(schema: JsonSchema) -> None:
    written = written_out(schema)
    assert written_out(written) == written


def test_a_ring_of_very_many_references_may_stay() -> None:
    ring: JsonSchema = {f"d{n}": {"properties": {"next": {"$ref": f"#/$defs/d{(n + 1) % 2000}"}}} for n in range(2000)}
    schema: JsonSchema = {"properties": {"first": {"$ref": "#/$defs/d0"}, "image": FILE}, "$defs": ring}
    assert written_out(schema) == schema


def test_references_that_lead_to_too_many_others_are_refused() -> None:
    items: JsonSchema = {f"x{n}": {"items": {"$ref": f"#/properties/x{(n + 1) % 1500}"}} for n in range(1500)}
    with pytest.raises(SchemaNotFollowedError, match="too many references"):
        written_out({"properties": items})
