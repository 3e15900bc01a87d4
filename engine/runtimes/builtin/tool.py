"""What a built-in tool is: a manifest, and a function from a model of its arguments to a model of its result."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

import jsonschema_rs
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from engine.runtimes.failures import CallFailed
from engine.runtimes.runtime import ToolRequest
from engine.runtimes.scripts.service import ScriptService
from toolagent.contracts.calls import ErrorType, ValidationIssue
from toolagent.contracts.manifest import JsonSchema, ToolManifest
from toolagent.core.json_paths import json_path

__all__ = ["BuiltinTool", "ScriptingTool", "ToolArguments", "ToolOutput", "TypedTool", "checked", "schema_of"]


class ToolArguments(BaseModel):
    """Strict, as JSON Schema is: no coercion, no unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ToolOutput(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class BuiltinTool(Protocol):
    """What the runtime needs of a tool."""

    @property
    def manifest(self) -> ToolManifest: ...

    async def invoke(self, params: dict[str, JsonValue]) -> JsonValue:
        """Check the parameters, run, and return plain JSON. Raises CallFailed."""
        ...


@runtime_checkable
class ScriptingTool(BuiltinTool, Protocol):
    """A tool that has the host execute scripts."""

    async def serve(self, request: ToolRequest, scripts: ScriptService) -> JsonValue:
        """As `invoke`, with the service of the host. Raises CallFailed."""
        ...


A = TypeVar("A", bound=ToolArguments)
R = TypeVar("R", bound=ToolOutput)


@dataclass(frozen=True, slots=True)
class TypedTool(Generic[A, R]):
    """A BuiltinTool out of typed parts. `run` raises CallFailed for what the caller or the world got wrong."""

    manifest: ToolManifest
    arguments: type[A]
    run: Callable[[A], Awaitable[R]]

    async def invoke(self, params: dict[str, JsonValue]) -> JsonValue:
        return (await self.run(checked(self.manifest.tool_id, self.arguments, params))).model_dump(mode="json")


def checked(tool_id: str, model: type[A], params: dict[str, JsonValue]) -> A:
    """The parameters of a call of that tool. Raises CallFailed (`validation_error`) with all that is wrong with them."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise _invalid(tool_id, error) from error


class _PlainSchema(GenerateJsonSchema):
    """Without the titles that pydantic makes out of Python names."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - the signature is pydantic's
        return False


def schema_of(model: type[BaseModel]) -> JsonSchema:
    """The JSON Schema of a model's JSON: of what it takes for arguments, of what it gives for results."""
    mode: JsonSchemaMode = "validation" if issubclass(model, ToolArguments) else "serialization"
    schema = model.model_json_schema(schema_generator=_PlainSchema, mode=mode)
    alone: JsonSchema = jsonschema_rs.dereference(schema)  # pydantic refers even to "any JSON" by a definition
    return {key: value for key, value in alone.items() if key not in {"$defs", "title", "description"}}


def _invalid(tool_id: str, error: ValidationError) -> CallFailed:
    issues = [
        ValidationIssue(path=json_path(found["loc"]), message=found["msg"], keyword=found["type"])
        for found in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    told = "; ".join(f"{issue.path}: {issue.message}" for issue in issues)
    return CallFailed(
        ErrorType.VALIDATION_ERROR,
        f"The parameters of {tool_id!r} are not valid: {told}",
        {"errors": [issue.model_dump(mode="json") for issue in issues]},
    )
