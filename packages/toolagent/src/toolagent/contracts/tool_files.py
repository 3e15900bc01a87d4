"""The format of `*.tool.json`: a tool in a file of its own, with our additions."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, NonNegativeFloat

from toolagent.contracts.contract import CAMEL_CASE, Contract, JsonSchema
from toolagent.contracts.identifiers import AtLeastOne, FileId, GroupId, NonEmpty, ShortText, ToolId
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
"""In a file, each field has one name only."""


Version = Annotated[
    str, Field(pattern=r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$", max_length=64)
]
"""SemVer, because versions must have an order."""


class ExternalScript(Contract):
    """A script that reads JSON from stdin and writes JSON to stdout."""

    model_config = _AS_WRITTEN

    type: Literal["external-script"]
    script_path: Annotated[str, Field(min_length=1, max_length=1024)]
    """Relative to the folder of this file, or, if it is not there, to the script root of the service."""
    language: ScriptLanguage
    entry_point: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    """A function of the script; unset: the script itself runs."""
    files: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=1024)], ...],
        Field(
            max_length=20,
            description="Ours: patterns (`lib/*.py`, `data/**`) of files in the script's folder. It is given itself and these alone; "
            "unset: its whole folder, or, where that holds many tools, itself alone.",
        ),
    ] = ()
    content: FileId | None = None
    """Ours: the script's folder in the content store, as an export names it; unset: the folder of this file."""


class ServiceMethod(Contract):
    """A method of a service of the engine."""

    model_config = _AS_WRITTEN

    type: Literal["service-method"]
    service_name: ShortText
    method_name: ShortText


ToolHandler = Annotated[ExternalScript | ServiceMethod, Field(discriminator="type")]


class ToolFile(Contract):
    """One version of a tool. All fields after `tags` are optional."""

    model_config = _AS_WRITTEN

    tool_id: ToolId
    """`namespace:tool-name`: `core:…`, `vendor:…`, `custom:…`."""
    display_name: ShortText
    description: NonEmpty
    """What the tool does and what it is for, for a model."""
    version: Version
    handler: ToolHandler
    parameters: JsonSchema = {}
    """JSON Schema of the parameters, an object."""
    output: JsonSchema = {}
    """JSON Schema of the output."""
    security_context: SecurityContext = SecurityContext()
    examples: tuple[ToolExample, ...] = ()
    tags: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = ()

    dependencies: tuple[ToolDependency, ...] = ()
    """Tools that this one calls. Without them a call is refused."""
    category: Annotated[str, Field(min_length=1, max_length=64)] = "custom"
    group_ids: tuple[GroupId, ...] = ()
    status: ToolStatus = ToolStatus.ACTIVE
    permission_class: PermissionClass = PermissionClass.EXTERNAL
    side_effect_scope: SideEffectScope = SideEffectScope.NETWORK
    """What a call may change; unset: anything."""
    idempotent: bool | None = None
    """A repeated call has no further effect."""
    requires_confirmation: bool = False
    """A person must confirm each call."""
    timeout_s: Annotated[float | None, Field(alias="timeoutSeconds", gt=0, le=86_400)] = None
    """Seconds that one call may take; unset: the default of the handler."""
    cost_usd: NonNegativeFloat = 0.0
    cache_ttl_s: Annotated[float, Field(alias="cacheTtlSeconds", ge=0)] = 0.0
    """Seconds for which a result may be reused."""
    bucket: Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9_-]*$")] = None
    """The bucket whose slots a call takes."""
    concurrency: AtLeastOne | None = None
    """Calls at once on one host."""
    scheduling_mode: SchedulingMode | None = None
    """`hot`: runs before its first call; unset: `cold`."""
    task_support: TaskSupport | None = None
    """Whether MCP clients may call it as a task; unset: `optional`."""
