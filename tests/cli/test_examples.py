"""The calls that the help shows fit the tools they name."""

import itertools
import json
import re
import shlex
from pathlib import Path

import pytest

from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from toolagent.cli.calling import run
from toolagent.cli.parameters import parse_parameters, with_uploads
from toolagent.contracts.contract import JsonSchema
from toolagent.validation.schemas import issues_of

REGISTRY = Path(__file__).parents[2] / "data" / "registry.json"
EXAMPLES = re.findall(r"`toolagent run ([^`]+)`", run.__doc__ or "")


def input_schema(tool_id: str) -> JsonSchema:
    """Of a built-in or shipped tool. Raises KeyError for any other."""
    shipped = {tool["tool_id"]: tool["input_schema"] for tool in json.loads(REGISTRY.read_text("utf-8"))["tools"]}
    return {name: tool.manifest.input_schema for name, tool in builtin_tools(BuiltinOptions()).items()}.get(tool_id) or shipped[tool_id]


def test_the_help_shows_calls() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_call_that_the_help_shows_fits_its_tool(line: str) -> None:
    tool_id, *words = shlex.split(line)
    named = list(itertools.takewhile(lambda word: not word.startswith("--"), words))
    schema = input_schema(tool_id)
    params = parse_parameters(named, schema, lambda _path: "The text of the file.")
    assert issues_of(schema, with_uploads(params, lambda _path: f"file_{0:032x}")) == ()
