"""Names that every vendor accepts, forms of tools, and calls by models."""

import json
import re
import time
from collections.abc import Mapping

import pytest
from anthropic.types import ToolParam
from hypothesis import given
from hypothesis import strategies as some
from mcp_types import Tool
from pydantic import JsonValue, TypeAdapter

from toolagent.contracts.calls import ErrorType, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.formats import ToolFormat
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, TaskSupport, ToolManifest
from toolagent.core.formats.listing import formatted
from toolagent.core.formats.mcp import ToolHints, as_mcp, hints_of
from toolagent.core.formats.names import tool_id_of, vendor_names
from toolagent.core.formats.schemas import UnsuitableTool, plain_object_schema
from toolagent.core.formats.uses import anthropic_answer, openai_answer, use_of_anthropic, use_of_openai

TEXT: JsonSchema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
COUNT = ToolManifest(
    tool_id="text:count",
    name="Count",
    description="Counts words.",
    input_schema=TEXT,
    output_schema={"type": "object", "properties": {"words": {"type": "integer"}}},
    permission_class=PermissionClass.READ,
    side_effect_scope=SideEffectScope.NONE,
)
DONE = ToolResult(status="success", result={"words": 2}, call_id="call-12345678")


def test_a_colon_becomes_two_lines_and_all_else_stays() -> None:
    assert vendor_names(["text:count", "echo", "a-b"]) == {"text__count": "text:count", "echo": "echo", "a-b": "a-b"}


def test_a_name_that_two_ids_would_have_is_given_to_neither() -> None:
    names = vendor_names(["a:b", "a__b"])
    assert (tool_id_of("a__b", names), sorted(names.values())) == (None, ["a:b", "a__b"])
    assert all(re.fullmatch("a__b_[0-9a-f]{8}", name) for name in names)


def test_a_hashed_name_is_taken_by_no_tool_whose_id_it_is() -> None:
    long = f"a:{'b' * 100}"
    (hashed,) = vendor_names([long])
    names = vendor_names([long, hashed])
    assert (tool_id_of(hashed, names), sorted(names.values())) == (None, sorted([long, hashed]))


@given(
    some.sets(some.from_regex(re.compile(TOOL_ID_PATTERN, re.ASCII), fullmatch=True).map(lambda text: text[:128].rstrip(":")), max_size=20)
)
def test_every_tool_has_one_name_of_the_form_and_long_ones_keep_theirs_whoever_else_is_listed(ids: set[str]) -> None:
    names = vendor_names(ids)
    assert (sorted(names.values()), [name for name in names if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)]) == (sorted(ids), [])
    directs = [tool_id.replace(":", "__") for tool_id in ids]
    for name, tool_id in names.items():
        if directs.count(tool_id.replace(":", "__")) == 1:
            assert vendor_names([tool_id]) == {name: tool_id}


@pytest.mark.parametrize(
    ("changed", "hints"),
    [
        ({}, ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False)),
        ({"permission_class": "external"}, ToolHints(read_only=True, destructive=False, idempotent=True, open_world=True)),
        ({"permission_class": "write"}, ToolHints(read_only=False, destructive=True, idempotent=True, open_world=False)),
        ({"side_effect_scope": "db_write"}, ToolHints(read_only=False, destructive=True, idempotent=False, open_world=False)),
        (
            {"side_effect_scope": "network", "idempotent": True},
            ToolHints(read_only=False, destructive=True, idempotent=True, open_world=True),
        ),
    ],
)
def test_hints_follow_from_side_effects_class_and_repeatability(changed: Mapping[str, JsonValue], hints: ToolHints) -> None:
    assert hints_of(ToolManifest.model_validate({**COUNT.model_dump(), **changed})) == hints


def test_each_form_of_a_tool() -> None:
    names = {"text__count": "text:count"}
    function: JsonValue = {"name": "text__count", "description": "Counts words.", "parameters": TEXT}
    assert {form: formatted([COUNT], names, form).tools[0] for form in ToolFormat} == {
        "openai": {"type": "function", "function": function},
        "openai_responses": {"type": "function", **function, "strict": False},
        "anthropic": {"name": "text__count", "description": "Counts words.", "input_schema": TEXT},
        "mcp": {
            "name": "text__count",
            "title": "Count",
            "description": "Counts words.",
            "inputSchema": TEXT,
            "outputSchema": COUNT.output_schema,
            "annotations": {
                "title": "Count",
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
            "execution": {"taskSupport": "optional"},
            "_meta": {"toolagent/tool_id": "text:count"},
        },
    }


def test_the_vendors_own_libraries_know_the_forms() -> None:
    names = {"text__count": "text:count"}
    (theirs,), (mcp,) = (formatted([COUNT], names, form).tools for form in (ToolFormat.ANTHROPIC, ToolFormat.MCP))
    assert TypeAdapter(ToolParam).validate_python(theirs) == theirs
    assert Tool.model_validate(mcp).model_dump(mode="json", by_alias=True, exclude_none=True) == mcp


def test_an_output_that_is_no_object_is_not_promised_and_what_a_manifest_says_of_tasks_is() -> None:
    tool = as_mcp(COUNT.model_copy(update={"output_schema": {"type": "string"}, "task_support": TaskSupport.FORBIDDEN}), "count")
    assert ("outputSchema" in tool, tool["execution"]) == (False, {"taskSupport": "forbidden"})


def test_what_a_client_holds_an_answer_against_names_no_formats() -> None:
    """JavaScript validators take `date-time` for one with an offset, and do not know `file-path`."""
    when: JsonSchema = {"type": "string", "format": "date-time"}
    schema: JsonSchema = {
        "type": "object",
        "properties": {"format": when, "files": {"type": "array", "items": {"anyOf": [when, {"type": "null"}]}}},
        "$defs": {"when": when},
        "propertyNames": when,
        "patternProperties": {"^x": {"type": "array", "contains": when, "maxContains": 1}},
        "not": {"properties": {"from": when}},
        "if": {"properties": {"from": {"not": {"const": 1}}}},
        "oneOf": [when, {"type": "string", "format": "date"}],
    }
    plain: JsonSchema = {"type": "string"}
    listed = as_mcp(COUNT.model_copy(update={"output_schema": schema, "input_schema": {**TEXT, "properties": {"text": when}}}), "count")
    assert listed["outputSchema"] == {
        "type": "object",
        "properties": {"format": plain, "files": {"type": "array", "items": {"anyOf": [plain, {"type": "null"}]}}},
        "$defs": {"when": plain},
        "propertyNames": plain,
        "patternProperties": {"^x": {"type": "array", "contains": plain}},
        "if": {"properties": {"from": {"not": {"const": 1}}}},
        "allOf": [{"anyOf": [plain, plain]}],
    }
    assert listed["inputSchema"] == {**TEXT, "properties": {"text": when}}


def test_a_choice_between_definitions_with_formats_is_any_of_them() -> None:
    def named(name: str) -> JsonSchema:
        return {"$ref": f"#/$defs/{name}"}

    schema: JsonSchema = {
        "type": "object",
        "properties": {"at": {"oneOf": [named("day"), named("when")]}, "other": {"not": named("day")}},
        "$defs": {"day": {"type": "string", "format": "date"}, "when": {"type": "string", "format": "date-time"}},
    }
    listed = as_mcp(COUNT.model_copy(update={"output_schema": schema}), "count")
    plain: JsonSchema = {"type": "string"}
    assert listed["outputSchema"] == {
        "type": "object",
        "properties": {"at": {"allOf": [{"anyOf": [named("day"), named("when")]}]}, "other": {}},
        "$defs": {"day": plain, "when": plain},
    }


def test_a_parameter_that_is_called_format_loosens_nothing() -> None:
    schema: JsonSchema = {
        "type": "object",
        "properties": {"format": {"enum": ["png", "jpg"]}, "at": {"oneOf": [{"$ref": "#/$defs/a"}, {"not": {"$ref": "#/$defs/a"}}]}},
        "$defs": {"a": {"type": "string"}},
    }
    assert as_mcp(COUNT.model_copy(update={"output_schema": schema}), "count")["outputSchema"] == schema


def test_a_deep_schema_is_told_in_time_that_grows_as_it_does() -> None:
    inner: JsonSchema = {"description": "x" * 400_000, "enum": [*range(50_000)], "format": "date"}
    for _ in range(90):
        inner = {"oneOf": [inner, {"$ref": "#/$defs/a"}]}
    schema: JsonSchema = {"type": "object", "properties": {"at": inner}, "$defs": {"a": {"type": "string"}}}
    begun = time.process_time()
    as_mcp(COUNT.model_copy(update={"output_schema": schema}), "count")
    assert time.process_time() - begun < 0.5


def test_a_choice_at_the_top_becomes_properties_and_words() -> None:
    schema: JsonSchema = {
        "$defs": {"By": {"properties": {"name": {"type": "string"}}, "required": ["name"]}},
        "properties": {"kind": {"type": "string"}},
        "anyOf": [{"$ref": "#/$defs/By"}, {"properties": {"number": {"$ref": "#/$defs/N"}}}],
    }
    plain, words = plain_object_schema(schema)
    assert plain == {
        "$defs": schema["$defs"],
        "type": "object",
        "properties": {"name": {"type": "string"}, "number": {"$ref": "#/$defs/N"}, "kind": {"type": "string"}},
    }
    assert words.startswith("The arguments must also fit: ")
    assert json.loads(words.partition(": ")[2]) == {"anyOf": schema["anyOf"]}


def test_a_reference_at_the_top_is_followed_and_those_below_stay() -> None:
    tree: JsonSchema = {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}
    plain, words = plain_object_schema({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}})
    assert (plain, words) == ({**tree, "$defs": {"Tree": tree}}, "")


@pytest.mark.parametrize(
    "schema",
    [{"type": "array"}, {"$ref": "#/$defs/No"}, {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, {"$ref": "#"},
     {"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}}],
)  # fmt: skip
def test_parameters_that_are_no_object_leave_the_tool_out(schema: JsonSchema) -> None:
    with pytest.raises(UnsuitableTool):
        plain_object_schema(schema)
    left = formatted([COUNT.model_copy(update={"input_schema": schema})], {"text__count": "text:count"}, ToolFormat.OPENAI)
    assert (left.tools, left.names, [*left.left_out]) == ((), {}, ["text:count"])


def test_a_parameter_whose_name_anthropic_refuses_leaves_the_tool_out_of_its_form_alone() -> None:
    tool = COUNT.model_copy(update={"input_schema": {"type": "object", "properties": {"文本": {"type": "string"}}}})
    there = {form: len(formatted([tool], {"text__count": "text:count"}, form).tools) for form in ToolFormat}
    assert there == {"openai": 1, "openai_responses": 1, "anthropic": 0, "mcp": 1}


class OfTheirLibrary:
    def model_dump(self) -> dict[str, object]:
        return {"id": "call_1", "type": "function", "function": {"name": "text__count", "arguments": '{"text": "a b"}'}}


COMPLETIONS = OfTheirLibrary().model_dump()
RESPONSES = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "text__count", "arguments": '{"text": "a b"}'}
ANTHROPIC = {"type": "tool_use", "id": "toolu_1", "name": "text__count", "input": {"text": "a b"}}


def test_what_models_want_called_is_read_from_dicts_and_from_objects() -> None:
    uses = [use_of_openai(COMPLETIONS), use_of_openai(OfTheirLibrary()), use_of_openai(RESPONSES), use_of_anthropic(ANTHROPIC)]
    assert [(use.use_id, use.name, use.params, use.fault) for use in uses] == [
        (use_id, "text__count", {"text": "a b"}, "") for use_id in ("call_1", "call_1", "call_1", "toolu_1")
    ]


@pytest.mark.parametrize("arguments", ["{", "[1]", '"a"', '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000, 7])
def test_broken_arguments_are_a_fault_that_the_model_reads(arguments: object) -> None:
    use = use_of_openai({**RESPONSES, "arguments": arguments})
    assert (use.params, use.fault.startswith("The arguments are no JSON")) == ({}, True)


@pytest.mark.parametrize("arguments", ["", "  ", None, "{}"])
def test_no_arguments_are_none(arguments: object) -> None:
    assert use_of_openai({**RESPONSES, "arguments": arguments}).params == {}


def test_what_is_no_use_of_a_tool_is_refused() -> None:
    for read in (use_of_openai, use_of_anthropic):
        with pytest.raises(ValueError, match="name or id"):
            read({"type": "text", "text": "hello"})


def test_answers_have_the_form_of_the_vendor_and_say_whether_they_are_errors() -> None:
    issue = ValidationIssue(path="$.text", message="missing", keyword="required")
    error = ToolError(type=ErrorType.VALIDATION_ERROR, message="No text.")
    wrong = ToolResult(status="error", error=error, error_type=error.type, validation_errors=(issue,))
    told = {
        "error": {"type": "validation_error", "message": "No text."},
        "validation_errors": [{"path": "$.text", "message": "missing", "keyword": "required"}],
    }
    assert openai_answer(COMPLETIONS, DONE) == {"role": "tool", "tool_call_id": "call_1", "content": '{"words": 2}'}
    assert openai_answer(RESPONSES, DONE) == {"type": "function_call_output", "call_id": "call_1", "output": '{"words": 2}'}
    done, failed = anthropic_answer(ANTHROPIC, DONE), anthropic_answer(ANTHROPIC, wrong)
    assert done == {"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"words": 2}', "is_error": False}
    assert (json.loads(str(failed.pop("content"))), failed["is_error"]) == (told, True)
    assert openai_answer(COMPLETIONS, DONE.model_copy(update={"result": "two"}))["content"] == "two"
