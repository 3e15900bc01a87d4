"""Tool files are exported as they were imported; the shipped ones follow their specification."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from engine.registry.formats import tool_json
from engine.registry.formats.state import KeptVersion
from engine.registry.services import METHODS
from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.store.database import Database
from tests.registry.tool_files import METHOD, SCRIPT, ToolFiles, tool_file
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.core.catalog.commented_json import parse_commented
from toolagent.core.catalog.tool_files import tool_file_schema
from toolagent.validation.schemas import issues_of, schema_faults

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "data" / "tools").rglob("*.tool.json"))

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
TOOL_IDS = st.from_regex(r"[a-z][a-z0-9_-]{0,8}(:[a-z][a-z0-9_-]{0,8})?", fullmatch=True)
VERSIONS = st.from_regex(r"(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})(-rc\.[1-9])?", fullmatch=True)
SCHEMAS = st.fixed_dictionaries({"type": st.just("object")}, optional={"properties": st.dictionaries(TEXT, st.just({"type": "integer"}))})
OURS = {
    "tags": st.lists(TEXT, max_size=3),
    "output": st.just({"type": "string"}),
    "category": st.sampled_from(["custom", "text"]),
    "sideEffectScope": st.sampled_from(["none", "network"]),
    "timeoutSeconds": st.floats(0.1, 1000),
    "idempotent": st.booleans() | st.none(),
    "securityContext": st.just({"fileAccess": {"allowRead": ["self"]}}),
    "dependencies": st.just([{"toolId": "somebody:else", "version": "^1.0"}]),
    "x-unknown": st.recursive(st.none() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=2)),
}
FILES = st.fixed_dictionaries(
    {
        "toolId": TOOL_IDS,
        "displayName": TEXT,
        "description": TEXT,
        "version": VERSIONS,
        "handler": st.just(METHOD),
        "parameters": SCHEMAS,
    },
    optional=OURS,
)


@cache
def _published() -> JsonSchema:
    """Made once, because it takes longer than all else."""
    return tool_file_schema()


@given(FILES)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_read_is_written_as_it_was_and_fits_the_published_schema(document: dict[str, JsonValue]) -> None:
    read = tool_json.read(json.dumps(document))
    assert read.file is not None, read.faults
    assert issues_of(_published(), document) == ()
    entry = ToolEntry(manifest=tool_json.manifest_in(read.file))
    assert tool_json.dump(KeptVersion(entry, read.value, (), is_active=True, pinned=False)) == document


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
COMMENT = st.text(st.characters(exclude_characters="\n\r/", exclude_categories=["Cs"]), max_size=12)


@given(JSON, COMMENT)
def test_comments_change_nothing_and_every_value_is_found_where_it_stands(value: JsonValue, comment: str) -> None:
    text = f"//{comment}\n" + "".join(f"{line} //{comment}\n" for line in json.dumps(value, indent=1, ensure_ascii=False).split("\n"))
    document = parse_commented(text)
    assert document.value == value
    steps = _first_way_down(value)
    place = document.place_of(steps)
    line = text.split("\n")[place.line - 1]
    found, _ = json.JSONDecoder().raw_decode(line, place.column - 1)
    assert found == _at(value, steps)


def _first_way_down(value: JsonValue) -> list[str | int]:
    steps: list[str | int] = []
    while isinstance(value, dict | list) and value:
        step: str | int = list(value)[-1] if isinstance(value, dict) else len(value) - 1
        steps.append(step)
        value = _at(value, [step])
    return steps


def _at(value: JsonValue, steps: list[str | int]) -> JsonValue:
    for step in steps:
        match value:
            case dict() if isinstance(step, str):
                value = value[step]
            case list() if isinstance(step, int):
                value = value[step]
            case _:
                raise AssertionError(step)
    return value


async def test_the_export_has_each_version_in_a_file_that_can_be_loaded_again(database: Database, tmp_path: Path) -> None:
    files = ToolFiles(database, tmp_path)
    written = tool_file(handler=SCRIPT)
    files.write("a/a", written)
    files.write_script("a/main.py")
    files.write("b", tool_file("custom:b"))
    await files.run()
    await files.registry.deactivate("custom:b", "1.0.0")
    exported = await files.exported()
    assert exported["registry.json"] == {"version": "2.0", "tools": []}
    assert exported["tools/custom.b@1.0.0.tool.json"] == {**tool_file("custom:b"), "status": "inactive"}
    script = exported["tools/custom.a@1.0.0.tool.json"]
    assert isinstance(script["handler"], dict)
    content = script["handler"]["content"]
    assert script == {**written, "handler": {**dict(SCRIPT), "content": content}}  # pyright: ignore[reportArgumentType, reportCallIssue]
    other = ToolFiles(database, tmp_path, "host-2")
    for name, document in exported.items():
        if name.endswith(".tool.json"):
            other.write(name.removeprefix("tools/").removesuffix(".tool.json"), document)
    assert await other.run() == ()


def test_the_shipped_python_tool_is_the_specified_example() -> None:
    seed = ROOT / "tests" / "registry" / "seed_004_execute_python_script.json"
    shipped = parse_commented((ROOT / "data/tools/core/execute-python-script.tool.json").read_text("utf-8")).value
    assert shipped == json.loads(seed.read_text("utf-8"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_what_ships_has_no_fault_and_fits_the_published_schema(path: Path) -> None:
    read = tool_json.read(path.read_text("utf-8"))
    assert read.faults == ()
    assert issues_of(tool_file_schema(), read.value) == ()


def test_the_published_schema_is_one() -> None:
    assert schema_faults(tool_file_schema()) == ()


def test_every_service_method_has_a_handler() -> None:
    assert SHIPPED
    assert {method.handler for method in METHODS.values()} <= set(builtin_tools(BuiltinOptions()))
    assert all(re.fullmatch(r"[A-Za-z]+", name) for names in METHODS for name in names)
