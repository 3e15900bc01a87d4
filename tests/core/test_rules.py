"""Pure rules of calls."""

from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from toolagent.contracts.calls import ToolCall
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import BuiltinSource, LocalSource, McpSource, RemoteSource
from toolagent.core.calls.idempotency import call_id_for_key, call_id_of_workflow, fingerprint
from toolagent.core.schemas import MASK, map_values, mask_secrets, mentions_format, values_of_format, with_defaults
from toolagent.core.suggestions import nearest
from toolagent_service.calls.dispatch import bucket_of, placement_of
from toolagent_service.calls.shared_processes import process_key
from toolagent_service.calls.ways import needs_no_slot, timeout_of
from toolagent_service.contracts.steps import Placement

BUCKETS = {"default", "http", "ai"}
PURE = ToolManifest(tool_id="pure", name="Pure", side_effect_scope=SideEffectScope.NONE, timeout_s=2)
LOCAL, REMOTE, BUILTIN = LocalSource(host_dir="x"), RemoteSource(remote_url="http://x"), BuiltinSource(handler="echo")


@pytest.mark.parametrize(
    ("bucket", "category", "expected"),
    [(None, "cv", "default"), (None, "ai", "ai"), ("http", "ai", "http"), ("unknown", "ai", "ai")],
)
@pytest.mark.promise("temporal-is-the-queue")
def test_a_call_takes_the_slots_of_its_bucket(bucket: str | None, category: str, expected: str) -> None:
    assert bucket_of(ToolManifest(tool_id="t", name="T", bucket=bucket, category=category), BUCKETS) == expected


@pytest.mark.promise("temporal-is-the-queue")
def test_tools_that_live_on_a_host_wait_in_its_queue() -> None:
    assert placement_of(ToolEntry(manifest=PURE, sources=(LOCAL,)), BUCKETS, "h1") == Placement(queue="h1/default", host="h1")
    assert placement_of(ToolEntry(manifest=PURE, sources=(BUILTIN, LOCAL)), BUCKETS, "h1") == Placement(queue="h1/default", host="h1")
    assert placement_of(ToolEntry(manifest=PURE, sources=(REMOTE,)), BUCKETS, "h1") == Placement(queue="default")


@pytest.mark.promise("temporal-is-the-queue")
def test_an_mcp_server_lives_on_a_host_unless_it_is_reached_over_http() -> None:
    here, there = McpSource(tool_name="x", command=("server",)), McpSource(tool_name="x", url="https://example.com/mcp")
    assert placement_of(ToolEntry(manifest=PURE, sources=(here,)), BUCKETS, "h1").host == "h1"
    assert placement_of(ToolEntry(manifest=PURE, sources=(there,)), BUCKETS, "h1") == Placement(queue="default")


def test_tools_of_one_mcp_server_are_in_one_process_and_those_with_other_variables_in_another() -> None:
    source = McpSource(tool_name="x", host_dir="x", process="server")
    other = source.model_copy(update={"tool_name": "y"})
    assert process_key(PURE, source) == process_key(PURE.model_copy(update={"tool_id": "other"}), other)
    assert process_key(PURE, source) != process_key(PURE, source.model_copy(update={"environment": {"A": "1"}}))
    assert process_key(PURE, McpSource(tool_name="x", host_dir="x")) is None


@pytest.mark.parametrize(
    ("scope", "timeout_s", "running", "fast"),
    [
        (SideEffectScope.NONE, 2.0, True, True),
        (SideEffectScope.NONE, 2.1, True, False),
        (SideEffectScope.NONE, 2.0, False, False),
        (SideEffectScope.NETWORK, 2.0, True, False),
    ],
)
@pytest.mark.promise("fast-path-is-for-the-harmless")
def test_the_fast_path_is_for_quick_harmless_tools_that_run(scope: SideEffectScope, timeout_s: float, running: bool, fast: bool) -> None:
    entry = ToolEntry(manifest=PURE.model_copy(update={"side_effect_scope": scope}), sources=(BUILTIN,))
    assert needs_no_slot(entry, timeout_s, is_ready=running) is fast


@pytest.mark.parametrize(("asked", "given_s"), [(None, 2), (1, 1), (100, 2)])
def test_a_caller_may_shorten_the_time_but_not_lengthen_it(asked: float | None, given_s: float) -> None:
    assert timeout_of(ToolCall(tool_id="pure", timeout_s=asked), PURE) == given_s


@pytest.mark.parametrize(
    ("idempotent", "scope", "repeatable"),
    [
        (None, SideEffectScope.NONE, True),
        (None, SideEffectScope.NETWORK, False),
        (True, SideEffectScope.NETWORK, True),
        (False, SideEffectScope.NONE, False),
    ],
)
def test_a_tool_is_repeatable_when_it_says_so_or_changes_nothing(idempotent: bool | None, scope: SideEffectScope, repeatable: bool) -> None:
    assert ToolManifest(tool_id="t", name="T", idempotent=idempotent, side_effect_scope=scope).repeatable is repeatable


@pytest.mark.promise("a-key-is-one-call")
def test_one_key_of_two_callers_is_two_calls() -> None:
    assert call_id_for_key("a", "k") != call_id_for_key("b", "k")
    assert call_id_for_key(None, "k") == call_id_for_key(None, "k")
    assert call_id_for_key("a,b", "k") != call_id_for_key("a", "b,k")


def test_a_foreign_workflow_id_may_be_used_again_for_another_call() -> None:
    assert call_id_of_workflow("call-0123456789", "run") == "call-0123456789"
    assert call_id_of_workflow("my-workflow", "run-1") == "call-run-1"


def test_the_fingerprint_sees_tool_version_and_params_and_nothing_else() -> None:
    call = ToolCall(tool_id="t", params={"a": 1, "b": 2})
    assert fingerprint(call) == fingerprint(ToolCall(tool_id="t", params={"b": 2, "a": 1}, timeout_s=3, idempotency_key="k"))
    others = [
        ToolCall(tool_id="u", params=call.params),
        ToolCall(tool_id="t", params={"a": 1}),
        call.model_copy(update={"version": "1.0.0"}),
    ]
    assert len({fingerprint(call), *map(fingerprint, others)}) == 4


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_every_call_has_a_fingerprint(params: dict[str, JsonValue]) -> None:
    assert len(fingerprint(ToolCall(tool_id="t", params=params))) == 64


NESTED: JsonSchema = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 3},
        "box": {"type": "object", "properties": {"side": {"default": "left"}}},
        "images": {"type": "array", "items": {"type": "string", "format": "file-path"}},
        "choice": {"anyOf": [{"type": "string", "format": "file-path"}, {"type": "null"}]},
        "key": {"type": "string", "format": "password"},
        "extra": {"type": "object", "additionalProperties": {"type": "string", "writeOnly": True}},
    },
}


def test_defaults_are_filled_in_where_nothing_was_said() -> None:
    assert with_defaults(NESTED, {"box": {}}) == {"size": 3, "box": {"side": "left"}}
    assert with_defaults(NESTED, {"size": None}) == {"size": None}


@pytest.mark.parametrize(
    ("types", "filled"),
    [
        ({"type": "string"}, {}),
        ({"type": ["string", "null"]}, {"author": None}),
        ({"type": ["string", "null"], "enum": ["a"]}, {}),
        ({}, {"author": None}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, {}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"author": None}),
        ({"oneOf": [{"const": "a"}, {"enum": ["b", "c"]}, False]}, {}),
        ({"oneOf": [{"const": "a"}, {"const": None}]}, {"author": None}),
        ({"enum": ["a", "b"]}, {}),
        ({"enum": ["a", None]}, {"author": None}),
        ({"anyOf": [{"description": "anything"}, {"type": "string"}]}, {"author": None}),
    ],
)
def test_a_null_that_its_own_schema_does_not_allow_is_no_default(types: JsonSchema, filled: dict[str, JsonValue]) -> None:
    assert with_defaults({"properties": {"author": {**types, "default": None}}}, {}) == filled


def test_file_paths_are_found_in_lists_and_branches() -> None:
    value: JsonValue = {"images": ["a", "b"], "choice": "c", "size": 1}
    assert list(values_of_format(NESTED, value, "file-path")) == [("$.images[0]", "a"), ("$.images[1]", "b"), ("$.choice", "c")]
    assert mentions_format(NESTED, "file-path")
    assert not mentions_format(NESTED, "uri")


def test_secrets_are_masked_for_the_record() -> None:
    masked = mask_secrets(NESTED, {"key": "sesame", "extra": {"a": "b"}, "size": 1})
    assert masked == {"key": MASK, "extra": {"a": MASK}, "size": 1}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"writeOnly": True}}},
        {"patternProperties": {"^x$": {"writeOnly": True}}},
        {"patternProperties": {"\\p{L}": {"writeOnly": True}}},
        {"if": {"properties": {"x": {"writeOnly": True}}}},
        {"then": {"properties": {"x": {"writeOnly": True}}}},
        {"else": {"properties": {"x": {"writeOnly": True}}}},
        {"dependentSchemas": {"y": {"properties": {"x": {"writeOnly": True}}}}},
        {"allOf": [{"anyOf": [{"oneOf": [{"additionalProperties": {"format": "password"}}]}]}]},
        {"writeOnly": True},
    ],
)
@pytest.mark.parametrize("secret", ["sesame", 1234, ["a", "b"], {"user": "u"}])
def test_a_secret_of_any_type_is_masked_wherever_the_schema_says_so(schema: JsonSchema, secret: JsonValue) -> None:
    assert mask_secrets(schema, {"x": secret}) == {"x": MASK}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("pattern", "masked"), [("^(a+)+$", "x"), ("^(?!b)(a+)+$", MASK), ("a", MASK), ("^b", "x")])
def test_a_pattern_of_a_stranger_takes_no_time(pattern: str, masked: str) -> None:
    name = "a" * 100_000 + "!"
    assert mask_secrets({"patternProperties": {pattern: {"writeOnly": True}}}, {name: "x"}) == {name: masked}


def test_a_value_is_followed_as_deep_as_its_schema_goes_and_what_is_below_stays() -> None:
    schema: JsonSchema = {"format": "file-path"}
    value: JsonValue = "a"
    for _ in range(80):
        schema, value = {"items": schema}, [value]
    assert [text for _, text in values_of_format(schema, value, "file-path")] == ["a"]
    assert map_values({"type": "array"}, value, lambda _path, _text, schema: str(schema)) == value


def test_what_no_schema_speaks_of_is_not_walked() -> None:
    class Closed(dict[str, JsonValue]):
        def items(self) -> NoReturn:
            pytest.fail("somebody looked")

    schema: JsonSchema = {"additionalProperties": {"type": "string", "format": "uri"}}
    assert [*values_of_format(schema, Closed(x="a"), "file-path")] == []
    assert [*values_of_format(schema, {"x": "a"}, "uri")] == [("$.x", "a")]


def test_a_string_that_two_parts_of_the_schema_speak_of_is_changed_once() -> None:
    part: JsonSchema = {"format": "file-path"}
    schema: JsonSchema = {"properties": {"x": {**part, "allOf": [part]}}, "patternProperties": {"x": part}}
    assert map_values(schema, {"x": "a"}, lambda _path, text, _schema: f"{text}!") == {"x": "a!"}
    assert [*values_of_format(schema, {"x": "a"}, "file-path")] == [("$.x", "a")]


def test_defaults_of_all_branches_that_must_apply_are_filled_in() -> None:
    schema: JsonSchema = {"properties": {"a": {"default": 1}}, "allOf": [{"properties": {"a": {"default": 2}, "b": {"default": 3}}}]}
    assert with_defaults(schema, {}) == {"a": 1, "b": 3}


def test_the_nearest_ids_come_first() -> None:
    known = ("image_stitcher", "image_compress_api", "echo")
    assert nearest("image_sticher", known)[0] == "image_stitcher"
    assert nearest("stitcher", known) == ("image_stitcher",)
    assert nearest("zzz", known) == ()


def test_parameters_without_secrets_are_not_walked_through() -> None:
    params: dict[str, JsonValue] = {"x": 1}
    assert mask_secrets({"patternProperties": {"^x": {"type": "integer"}}}, params) is params
