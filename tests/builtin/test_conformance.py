"""Every built-in tool keeps the contract, and the check finds a tool that does not."""

from importlib import import_module
from pkgutil import walk_packages

import pytest
from pydantic import JsonValue

from engine.runtimes import builtin
from engine.runtimes.builtin import builtin_tools, entries
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import ToolContext
from tests.builtin.conformance import check_tool
from toolagent.contracts.manifest import SideEffectScope, ToolExample, ToolManifest
from toolagent.contracts.sources import BuiltinSource

TOOLS = builtin_tools(BuiltinOptions())
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("tool_id", TOOLS)
async def test_a_built_in_tool_conforms(tool_id: str) -> None:
    assert await check_tool(tool_id, TOOLS[tool_id]) == ()


def test_each_file_of_a_tool_has_its_line_in_the_list() -> None:
    found = [import_module(module.name) for module in walk_packages(builtin.__path__, "engine.runtimes.builtin.")]
    listed = {make.__module__ for make in getattr(builtin, "_TOOLS")}  # noqa: B009 - the list itself
    unlisted = [module.__name__ for module in found if hasattr(module, "tool") and module.__name__ not in listed]
    assert unlisted == [], "Each needs its `tool` in `_TOOLS` of engine/runtimes/builtin/__init__.py."


class Careless:
    """A tool without checks of its parameters."""

    manifest = ToolManifest(
        tool_id="careless",
        name="Careless",
        description="Takes anything.",
        input_schema=SCHEMA,
        output_schema=SCHEMA,
        examples=(ToolExample(input={"n": 1}, expected_output={"n": 2}),),
    )

    starts_processes = False

    async def invoke(self, params: dict[str, JsonValue], context: ToolContext) -> JsonValue:  # noqa: ARG002
        return {"n": params.get("n")}


async def test_a_tool_that_takes_anything_does_not_conform() -> None:
    problems = await check_tool("careless", Careless())
    assert "the example {'n': 1} gave {'n': 1}, not {'n': 2}" in problems
    assert "{} was accepted against input_schema" in problems
    assert "{'n': 1, 'no_such_parameter': 1} was accepted against input_schema" in problems


async def test_a_tool_under_another_name_does_not_conform() -> None:
    assert await check_tool("other", TOOLS["echo"]) == ("'echo' is registered as 'other'",)


def test_each_tool_becomes_an_entry_whose_source_is_its_handler() -> None:
    assert [(entry.manifest.tool_id, entry.sources) for entry in entries(TOOLS)] == [
        (tool_id, (BuiltinSource(handler=tool_id),)) for tool_id in TOOLS
    ]


@pytest.mark.parametrize("tool_id", ["echo", "calculator"])
def test_harmless_tools_may_go_the_fast_path(tool_id: str) -> None:
    manifest = TOOLS[tool_id].manifest
    assert (manifest.side_effect_scope, manifest.timeout_s) == (SideEffectScope.NONE, 2.0)


def test_an_allow_list_entry_that_is_no_host_is_refused_at_start() -> None:
    with pytest.raises(ValueError, match="TOOL_AGENT_HTTP_REQUEST_ALLOW"):
        builtin_tools(BuiltinOptions(http_request_allow=("10.0.0.0/33",)))
