"""The examples of the OpenAPI document can be sent unchanged."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue, TypeAdapter

from api.reading.bodies import RunToolBody, SelectToolBody
from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from toolagent.contracts.calls import ToolCall
from toolagent.contracts.contract import JsonSchema
from toolagent.validation.schemas import issues_of

HERE = Path(__file__)
DOCUMENT = TypeAdapter(dict[str, JsonValue]).validate_json(HERE.with_name("openapi.json").read_bytes())
PATHS = ("/run_tool", "/select_tool")


def input_schemas() -> dict[str, JsonSchema]:
    """The input schemas of all tools of a new service."""
    shipped = json.loads((HERE.parents[2] / "data" / "registry.json").read_text("utf-8"))["tools"]
    built_in = {tool_id: tool.manifest.input_schema for tool_id, tool in builtin_tools(BuiltinOptions()).items()}
    return built_in | {tool["tool_id"]: tool["input_schema"] for tool in shipped}


def at(value: JsonValue, *names: str) -> JsonValue:
    for name in names:
        assert isinstance(value, dict)
        value = value[name]
    return value


def shown(path: str) -> Iterator[dict[str, JsonValue]]:
    """The examples of a route's body, at the route or in its schema."""
    content = at(DOCUMENT, "paths", path, "post", "requestBody", "content", "application/json")
    name = str(at(content, "schema", "$ref")).rpartition("/")[2]
    for place in (content, at(DOCUMENT, "components", "schemas", name)):
        assert isinstance(place, dict)
        yield from TypeAdapter(list[dict[str, JsonValue]]).validate_python(place.get("examples", []))


@pytest.mark.parametrize("path", PATHS)
def test_every_example_of_a_call_is_one_that_a_tool_here_takes(path: str) -> None:
    examples, schemas = list(shown(path)), input_schemas()
    assert examples != []
    for example in examples:
        (RunToolBody if path == "/run_tool" else SelectToolBody).model_validate_json(json.dumps(example))
        call = ToolCall.model_validate(example)
        assert call.tool_id in schemas
        assert issues_of(schemas[call.tool_id], call.params) == ()
