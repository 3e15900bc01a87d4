"""Uses of tools by models: reads them from each vendor's form, and writes the answer in the same form."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue, TypeAdapter, ValidationError

from toolagent.contracts.calls import ToolResult

__all__ = ["Dumped", "ToolUse", "answer_text", "answer_value", "anthropic_answer", "openai_answer", "use_of_anthropic", "use_of_openai"]

_FIELDS: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])
_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


class Dumped(Protocol):
    """An object of a vendor's library."""

    def model_dump(self) -> dict[str, object]: ...


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One use. The answer names `use_id`. `fault` tells the model why its arguments are invalid."""

    use_id: str
    name: str
    params: dict[str, JsonValue]
    fault: str = ""


def use_of_openai(tool_call: Mapping[str, object] | Dumped) -> ToolUse:
    """Reads a `tool_call` of chat completions, or a `function_call` item of responses. Raises ValueError for anything else."""
    given = _mapping(tool_call)
    function, use_id = given.get("function"), given.get("call_id") or given.get("id")
    called = _FIELDS.validate_python(function) if isinstance(function, dict) else given
    name, arguments = called.get("name"), called.get("arguments")
    if isinstance(name, str) and isinstance(use_id, str):
        return _read(use_id, name, arguments)
    raise ValueError("this is neither a tool_call of chat completions nor a function_call of responses: name or id is missing")


def use_of_anthropic(tool_use: Mapping[str, object] | Dumped) -> ToolUse:
    """Reads a `tool_use` block of a message. Raises ValueError for anything else."""
    given = _mapping(tool_use)
    name, use_id = given.get("name"), given.get("id")
    if isinstance(name, str) and isinstance(use_id, str):
        return _read(use_id, name, given.get("input"))
    raise ValueError("this is no tool_use block: name or id is missing")


def openai_answer(tool_call: Mapping[str, object] | Dumped, result: ToolResult) -> dict[str, JsonValue]:
    """The tool message of chat completions, or the `function_call_output` item of responses."""
    given, use = _mapping(tool_call), use_of_openai(tool_call)
    if "function" in given:
        return {"role": "tool", "tool_call_id": use.use_id, "content": answer_text(result)}
    return {"type": "function_call_output", "call_id": use.use_id, "output": answer_text(result)}


def anthropic_answer(tool_use: Mapping[str, object] | Dumped, result: ToolResult) -> dict[str, JsonValue]:
    """The `tool_result` block of the next message."""
    use = use_of_anthropic(tool_use)
    is_error = result.error is not None
    return {"type": "tool_result", "tool_use_id": use.use_id, "content": answer_text(result), "is_error": is_error}


def answer_text(result: ToolResult) -> str:
    """`answer_value` as a text: a string unchanged, anything else as JSON."""
    told = answer_value(result)
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)


def answer_value(result: ToolResult) -> JsonValue:
    """The answer for a model: the output, or the error with faults of the parameters."""
    if result.error is None:
        return result.result
    said: dict[str, JsonValue] = {"error": result.error.model_dump(mode="json", exclude_none=True)}
    if result.validation_errors:
        said["validation_errors"] = [issue.model_dump(mode="json", exclude_defaults=True) for issue in result.validation_errors]
    return said


def _mapping(given: Mapping[str, object] | Dumped) -> Mapping[str, object]:
    return given if isinstance(given, Mapping) else given.model_dump()


def _read(use_id: str, name: str, arguments: object) -> ToolUse:
    """Faults of arguments are for the model, because it wrote them."""
    try:
        # For a tool without parameters, some models write nothing at all.
        value = _parsed(arguments) if isinstance(arguments, str) else arguments
        params = _OBJECT.validate_python({} if value is None else value)
        json.dumps(params, ensure_ascii=False, allow_nan=False).encode()
    except ValidationError:
        return ToolUse(use_id, name, {}, "The arguments are no JSON object. Send one, with the parameters by name.")
    except (ValueError, RecursionError) as error:
        return ToolUse(use_id, name, {}, f"The arguments are no JSON that can be read: {error}. Send one JSON object.")
    return ToolUse(use_id, name, params)


def _parsed(text: str) -> object:
    return json.loads(text) if text.strip() else None
