"""A repair must not remove masks from a schema, or add files."""

import time

import pytest

from engine.making.schema_rights import files_by_default, more_files, unmasked, unnamed_files
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest

SECRET: JsonSchema = {"type": "string", "writeOnly": True}
FILE: JsonSchema = {"type": "string", "format": "file-path"}
DEFAULT: JsonSchema = {**FILE, "default": "customers.csv"}


def of(**properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": {**properties}}


@pytest.mark.parametrize(
    ("before", "now", "places"),
    [
        (of(pin=SECRET), of(pin={"type": "string"}), ["pin"]),
        (of(pin=SECRET), of(), ["pin"]),
        (of(pin=SECRET), of(pin={"type": "string", "format": "password"}), []),
        (of(pin=SECRET), of(pin={"anyOf": [SECRET, {"type": "null"}]}, more={"type": "string"}), []),
        (of(log=of(pin=SECRET)), of(log=of(pin={})), ["log.pin"]),
        (of(pins={"items": SECRET}), of(pins={"items": {}}), ["pins.[]"]),
        ({"additionalProperties": SECRET}, {"additionalProperties": SECRET, "properties": {"pin": {}}}, ["pin"]),
        ({"patternProperties": {"^p": SECRET}}, {"patternProperties": {"^q": SECRET}}, ["/^p/"]),
        ({**of(pin={}), "writeOnly": True}, of(pin={}), ["all of it", "pin"]),
    ],
)
def test_what_was_masked_stays_masked(before: JsonSchema, now: JsonSchema, places: list[str]) -> None:
    assert unmasked(before, now) == places


def test_a_new_file_is_seen_wherever_it_is() -> None:
    assert more_files(of(f=FILE), of(f={"anyOf": [FILE, {"type": "null"}]}, g={"type": "string"})) == []
    assert more_files(of(f=FILE), of(f=FILE, g=FILE, h=of(i={"items": FILE}))) == ["g", "h.i.[]"]


def test_a_large_schema_is_walked_once_for_each_depth_and_not_for_each_part() -> None:
    parts: dict[str, JsonSchema] = {f"p{number}": {"type": "string", "default": "x"} for number in range(2_000)}
    large = of(**parts, f=DEFAULT, s=SECRET)
    began = time.process_time()
    assert files_by_default(large) == ["$.f"]
    assert unmasked(large, large) == []
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        (of(f=FILE, n={"type": "string", "default": "customers.csv"}), []),
        (of(f=DEFAULT), ["$.f"]),
        (of(f={"allOf": [FILE], "default": "customers.csv"}), ["$.f"]),
        (of(o=of(f=DEFAULT)), ["$.o.f"]),
        (of(o={**of(f=FILE), "default": {"f": "customers.csv"}}), ["$.o.f"]),
        ({**of(o=of(f={"default": "x"})), "patternProperties": {"^o": of(f=FILE)}}, ["$.o.f"]),
        ({"allOf": [of(f={"default": "x"})], **of(f=FILE)}, ["$.f"]),
    ],
)
def test_a_default_that_names_a_file_is_seen_wherever_it_is(schema: JsonSchema, files: list[str]) -> None:
    assert files_by_default(schema) == files
    assert bool(unnamed_files([ToolEntry(manifest=ToolManifest(tool_id="t", name="T", input_schema=schema))])) is bool(files)
