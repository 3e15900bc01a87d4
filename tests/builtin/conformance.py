"""The rules that every built-in tool must follow."""

import jsonschema_rs
from pydantic import JsonValue

from engine.runtimes.builtin.tool import BuiltinTool, ToolContext
from engine.runtimes.failures import CallFailed
from engine.runtimes.runtime import ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolExample

__all__ = ["check_tool", "run_alone"]

_PROBES: tuple[JsonValue, ...] = (None, True, 7, -0.5, "", "x", [], [1], {}, {"x": 1})


async def check_tool(key: str, tool: BuiltinTool) -> tuple[str, ...]:
    """All faults of a tool that is registered under `key`."""
    manifest = tool.manifest
    problems = [f"{manifest.tool_id!r} is registered as {key!r}"] if manifest.tool_id != key else []
    if not manifest.description:
        problems.append("it has no description")
    if not manifest.examples:
        problems.append("it has no example")
    for name, schema in (("input_schema", manifest.input_schema), ("output_schema", manifest.output_schema)):
        problems += _schema_problems(name, schema)
    if problems:
        return tuple(problems)
    for example in manifest.examples:
        problems += await _example_problems(tool, example)
    for params in _bad_params(tool):
        problems += await _refusal_problems(tool, params)
    return tuple(problems)


async def run_alone(tool: BuiltinTool, params: dict[str, JsonValue]) -> JsonValue:
    """The result of a call without a host. Raises CallFailed."""
    request = ToolRequest(call_id="call-alone", params=params, timeout_s=tool.manifest.timeout_s)
    return await tool.invoke(params, ToolContext.of(tool.manifest, request, None))


def _schema_problems(name: str, schema: dict[str, JsonValue]) -> list[str]:
    if schema.get("type") != "object":
        return [f"{name} is not of an object"]
    if not jsonschema_rs.meta.is_valid(schema):
        return [f"{name} is no JSON Schema"]
    return [f"{name} has {noise!r}: it must stand alone and plain" for noise in ("$defs", "title") if noise in schema]


async def _example_problems(tool: BuiltinTool, example: ToolExample) -> list[str]:
    if not jsonschema_rs.is_valid(tool.manifest.input_schema, example.input):
        return [f"the example {example.input!r} does not fit input_schema"]
    if example.expected_output is None or tool.starts_processes:  # processes need a host
        return []
    output = await run_alone(tool, dict(example.input))
    problems = [] if jsonschema_rs.is_valid(tool.manifest.output_schema, output) else [f"{output!r} does not fit output_schema"]
    if output != example.expected_output:
        problems.append(f"the example {example.input!r} gave {output!r}, not {example.expected_output!r}")
    return problems


def _bad_params(tool: BuiltinTool) -> list[dict[str, JsonValue]]:
    """Parameters that the schema refuses: each one left out, each one with every kind of JSON, and an unknown one."""
    good = dict(tool.manifest.examples[0].input)
    properties = tool.manifest.input_schema.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    tried: list[dict[str, JsonValue]] = [{**good, "no_such_parameter": 1}]
    tried += [{other: value for other, value in good.items() if other != name} for name in names]
    tried += [{**good, name: probe} for name in names for probe in _PROBES]
    return [params for params in tried if not jsonschema_rs.is_valid(tool.manifest.input_schema, params)]


async def _refusal_problems(tool: BuiltinTool, params: dict[str, JsonValue]) -> list[str]:
    try:
        await run_alone(tool, params)
    except CallFailed as failure:
        return [] if failure.error_type is ErrorType.VALIDATION_ERROR else [f"{params!r} gave {failure.error_type}"]
    return [f"{params!r} was accepted against input_schema"]
