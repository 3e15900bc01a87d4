"""`*.tool.json`: a tool in a file of its own, and what we let it say besides."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from toolagent.contracts.contract import CAMEL_CASE, Contract, JsonSchema
from toolagent.contracts.identifiers import FileId, GroupId, ToolId
from toolagent.contracts.manifest import (
    PermissionClass,
    SchedulingMode,
    SecurityContext,
    SideEffectScope,
    TaskSupport,
    ToolDependency,
    ToolExample,
    ToolStatus,
)
from toolagent.contracts.sources import ScriptLanguage

__all__ = ["ExternalScript", "ServiceMethod", "ToolFile", "ToolHandler"]

_AS_WRITTEN: ConfigDict = {**CAMEL_CASE, "validate_by_name": False}
"""In a file each field has one name."""


Version = Annotated[
    str, Field(pattern=r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$", max_length=64)
]
"""SemVer. What it cannot order has no place among versions side by side."""


class ExternalScript(Contract):
    """A script that reads JSON from stdin and writes JSON to stdout."""

    model_config = _AS_WRITTEN

    type: Literal["external-script"]
    script_path: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1024,
            description="Relative to the folder of this file; where there is no such script, relative to the script root of the service.",
        ),
    ]
    language: ScriptLanguage
    entry_point: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="A function of the script; unset: the script itself is run."),
    ] = None
    files: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=1024)], ...],
        Field(
            max_length=20,
            description="Ours: patterns (`lib/*.py`, `data/**`) of files in the script's folder. It is given itself and these alone; "
            "unset: its whole folder, or, where that holds many tools, itself alone.",
        ),
    ] = ()
    content: Annotated[
        FileId | None,
        Field(description="Ours: the script's folder in the content store, as an export names it; unset: the folder beside this file."),
    ] = None


class ServiceMethod(Contract):
    """A method of a service of the engine."""

    model_config = _AS_WRITTEN

    type: Literal["service-method"]
    service_name: Annotated[str, Field(min_length=1, max_length=200)]
    method_name: Annotated[str, Field(min_length=1, max_length=200)]


ToolHandler = Annotated[ExternalScript | ServiceMethod, Field(discriminator="type")]


class ToolFile(Contract):
    """One version of a tool. The fields after `tags` may all be left out."""

    model_config = _AS_WRITTEN

    tool_id: Annotated[ToolId, Field(description="`namespace:tool-name`: `core:…`, `vendor:…`, `custom:…`.")]
    display_name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(min_length=1, description="What the tool does and what it is for, in words a model understands.")]
    version: Version
    handler: ToolHandler
    parameters: Annotated[JsonSchema, Field(description="JSON Schema of the parameters: of an object.")] = {}
    output: Annotated[JsonSchema, Field(description="JSON Schema of what a call gives.")] = {}
    security_context: SecurityContext = SecurityContext()
    examples: tuple[ToolExample, ...] = ()
    tags: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = ()

    dependencies: Annotated[
        tuple[ToolDependency, ...], Field(description="Tools that this one calls: without them a call is refused.")
    ] = ()
    category: Annotated[str, Field(min_length=1, max_length=64)] = "custom"
    group_ids: tuple[GroupId, ...] = ()
    status: ToolStatus = ToolStatus.ACTIVE
    permission_class: PermissionClass = PermissionClass.EXTERNAL
    side_effect_scope: Annotated[SideEffectScope, Field(description="What a call may change; unset, it may change everything.")] = (
        SideEffectScope.NETWORK
    )
    idempotent: Annotated[bool | None, Field(description="May be called again with no further effect.")] = None
    requires_confirmation: Annotated[bool, Field(description="A person must confirm each call.")] = False
    timeout_s: Annotated[
        float | None, Field(alias="timeoutSeconds", gt=0, le=86_400, description="Seconds one call may take; unset: what the handler says.")
    ] = None
    cost_usd: Annotated[float, Field(ge=0)] = 0.0
    cache_ttl_s: Annotated[float, Field(alias="cacheTtlSeconds", ge=0, description="Seconds a result may be served again.")] = 0.0
    bucket: Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9_-]*$", description="Whose slots a call takes.")] = None
    concurrency: Annotated[int | None, Field(ge=1, description="Calls at once on one host.")] = None
    scheduling_mode: Annotated[SchedulingMode | None, Field(description="`hot`: it is ready before its first call; unset: `cold`.")] = None
    task_support: Annotated[TaskSupport | None, Field(description="Whether MCP clients may call it as a task; unset: `optional`.")] = None
