"""Which existing tools are tried before one is made: similar ones that take the examples and have no side effects."""

from collections.abc import Mapping

import pytest

from engine.making.existing_tools import existing_tools, words_of
from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from tests.parts import tool_registry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import NetworkAccess, PermissionClass, SecurityContext, SideEffectScope, ToolManifest, ToolStatus
from toolagent.contracts.sources import LocalSource, RemoteSource, ToolSource
from toolagent.contracts.task_specs import BuildTool, Example
from toolagent_service.contracts.making_steps import ExistingTool

TEXT: JsonSchema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False}
HERE: tuple[ToolSource, ...] = (LocalSource(host_dir="counter"),)
EXAMPLES = (
    Example(input={"text": "one two"}, expected_output={"words": 2}),
    Example(input={"text": ""}, expected_output={"words": 0}),
)
WANTED = BuildTool(tool_name="text_words", description="Count the words of a text.", examples=EXAMPLES)


@pytest.fixture
def registry(database: Database) -> ToolRegistry:
    return tool_registry(database)


async def registered(registry: ToolRegistry, tool_id: str = "word_counter", sources: tuple[ToolSource, ...] = HERE, **said: object) -> None:
    told: Mapping[str, object] = {"input_schema": TEXT, "side_effect_scope": SideEffectScope.NONE, **said}
    await registry.register(ToolManifest.model_validate({"tool_id": tool_id, "name": "A tool", **told}), sources)


async def ids(registry: ToolRegistry, spec: BuildTool = WANTED) -> list[str]:
    return [tool.tool_id for tool in await existing_tools(spec, registry)]


async def test_a_tool_like_it_that_takes_the_inputs_is_tried_in_its_active_version(registry: ToolRegistry) -> None:
    await registered(registry)
    await registered(registry, version="1.1.0")
    assert await existing_tools(WANTED, registry) == (ExistingTool(tool_id="word_counter", version="1.1.0"),)


async def test_the_likeliest_three_are_tried(registry: ToolRegistry) -> None:
    for tool_id in ("word_text_count", "text_count", "counter", "spare_counter", "weather"):
        await registered(registry, tool_id)
    assert await ids(registry) == ["word_text_count", "text_count", "counter"]


@pytest.mark.parametrize(
    "said",
    [
        {"side_effect_scope": SideEffectScope.LOCAL_STATE},
        {"side_effect_scope": SideEffectScope.NETWORK},
        {"permission_class": PermissionClass.WRITE},
        {"requires_confirmation": True},
        {"cost_usd": 0.01},
        {"status": ToolStatus.INACTIVE},
        {"security_context": SecurityContext(network_access=NetworkAccess(allow_hosts=("example.test",)))},
        {"security_context": SecurityContext(required_capabilities=("email",))},
        {"sources": (RemoteSource(remote_url="https://example.test"),)},
        {"sources": ()},
    ],
    ids=str,
)
async def test_nothing_is_called_on_a_guess_that_could_do_something(registry: ToolRegistry, said: dict[str, object]) -> None:
    """Nor a tool that would send the inputs elsewhere, or cost something."""
    await registered(registry, **said)  # pyright: ignore[reportArgumentType] - `sources` among them
    assert await ids(registry) == []


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {"words": {"type": "string"}}},
        {"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}},
        {"type": "object", "properties": {"text": {"type": "string"}, "language": {"type": "string"}}, "required": ["language"]},
        {"type": "object", "properties": {"text": {"type": "string", "format": "file-path"}}},
    ],
    ids=str,
)
async def test_a_tool_that_does_not_take_every_input_is_not_tried(registry: ToolRegistry, schema: JsonSchema) -> None:
    await registered(registry, input_schema=schema)
    assert await ids(registry) == []


@pytest.mark.parametrize(("fields", "is_tried"), [(("words", "lines"), True), (("summary",), False), ((), False), (None, True)])
async def test_a_tool_that_says_it_gives_something_else_is_not_tried(
    registry: ToolRegistry, fields: tuple[str, ...] | None, is_tried: bool
) -> None:
    output: JsonSchema = {} if fields is None else {"type": "object", "properties": {name: {"type": "integer"} for name in fields}}
    await registered(registry, output_schema=output)
    assert await ids(registry) == (["word_counter"] if is_tried else [])


async def test_what_is_not_required_is_filled_in(registry: ToolRegistry) -> None:
    language: JsonSchema = {"type": "string", "default": "en"}
    await registered(
        registry, input_schema={**TEXT, "properties": {"text": {"type": "string"}, "language": language}, "required": ["text", "language"]}
    )
    assert await ids(registry) == ["word_counter"]


@pytest.mark.parametrize("examples", [(), (Example(input={"text": "one"}, expected_output={}),)])
async def test_without_an_example_that_expects_something_none_is_tried(registry: ToolRegistry, examples: tuple[Example, ...]) -> None:
    await registered(registry)
    assert await ids(registry, WANTED.model_copy(update={"examples": examples})) == []


async def test_a_need_in_chinese_finds_tools(registry: ToolRegistry) -> None:
    await registered(registry, "counter", description="计算文本的单词数量。")
    await registered(registry, "weather", description="天气预报。")
    assert await ids(registry, BuildTool(tool_name="zs", description="统计单词", examples=EXAMPLES)) == ["counter"]


def test_small_words_and_plurals_say_nothing() -> None:
    assert words_of("Count the words of a text, and 统计字。") == ("count", "word", "text", "统计", "计字")
