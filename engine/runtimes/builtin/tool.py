"""Built-in tools: a manifest, and a function from a model of arguments to a model of the result."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

import jsonschema_rs
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from engine.runtimes.failures import CallFailed
from engine.runtimes.runtime import Progress, ToolRequest
from engine.runtimes.scripts.service import ScriptService
from toolagent.contracts.calls import Caller, ErrorType, ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.json_paths import json_path


class ToolArguments(BaseModel):
    """Strict like JSON Schema: no coercion, no unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ToolOutput(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    leaves_out_none: ClassVar[bool] = False
    """Whether the result leaves out fields that are None."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The caller, and what a tool may use besides its arguments."""

    tool: ToolManifest
    """The called tool: several tools may share a handler."""
    call_id: str
    caller: Caller
    asked: dict[str, JsonValue]
    """The caller's parameters, unchanged."""
    timeout_s: float
    progress: Progress
    files: Path
    """The folder for files that the call makes."""
    scripts: ScriptService | None = None
    """Runs foreign code in this host's sandbox; None if nothing can be run here."""

    @classmethod
    def of(cls, tool: ToolManifest, request: ToolRequest, scripts: ScriptService | None) -> "ToolContext":
        called = request.manifest or tool
        return cls(
            called, request.call_id, request.caller, request.params, request.timeout_s, request.progress, request.output_dir, scripts
        )


class BuiltinTool(Protocol):
    """A tool as its runtime uses it."""

    @property
    def manifest(self) -> ToolManifest: ...

    @property
    def starts_processes(self) -> bool:
        """Whether it starts processes, which end with the call."""
        ...

    async def invoke(self, params: dict[str, JsonValue], context: ToolContext) -> JsonValue:
        """Checks the parameters, runs, and returns plain JSON. Raises CallFailed."""
        ...


A = TypeVar("A", bound=ToolArguments)
R = TypeVar("R", bound=ToolOutput)


@dataclass(frozen=True, slots=True)
class TypedTool(Generic[A, R]):
    """A BuiltinTool made of typed parts. `run` raises CallFailed for faults of the caller and of the world outside."""

    manifest: ToolManifest
    arguments: type[A]
    run: Callable[[A, ToolContext], Awaitable[R]]
    starts_processes: bool = False

    async def invoke(self, params: dict[str, JsonValue], context: ToolContext) -> JsonValue:
        result = await self.run(checked(context.tool.tool_id, self.arguments, params), context)
        return result.model_dump(mode="json", exclude_none=result.leaves_out_none)


def checked(tool_id: str, model: type[A], params: dict[str, JsonValue]) -> A:
    """The validated parameters. Raises CallFailed (`validation_error`) with all their faults."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise _invalid(tool_id, error) from error


class _PlainSchema(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes of Python names."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - the signature is pydantic's
        return False


def schema_of(model: type[BaseModel]) -> JsonSchema:
    """The JSON Schema of a model: of its input for arguments, of its output for results."""
    mode: JsonSchemaMode = "validation" if issubclass(model, ToolArguments) else "serialization"
    schema = model.model_json_schema(schema_generator=_PlainSchema, mode=mode)
    alone: JsonSchema = jsonschema_rs.dereference(schema)  # pydantic makes a definition even for "any JSON"
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
