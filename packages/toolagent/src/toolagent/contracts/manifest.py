"""The manifest of a tool: its id, version, schemas, rights and limits."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, NonNegativeFloat, StringConstraints

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.contract import CAMEL_CASE, Contract, JsonSchema
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.identifiers import AtLeastOne, EnvironmentName, GroupId, ShortText, ToolId, UpToADay
from toolagent.contracts.sandbox import SandboxGrant, SandboxLimits

__all__ = [
    "FileAccess",
    "NetworkAccess",
    "PermissionClass",
    "SchedulingMode",
    "SecurityContext",
    "SemVer",
    "SideEffectScope",
    "TaskSupport",
    "ToolDependency",
    "ToolExample",
    "ToolGroup",
    "ToolManifest",
    "ToolStatus",
]

SemVer = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$", max_length=64)]


class ToolStatus(StrEnum):
    """The status of a tool version. Only `active` ones can be called."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    STAGING = "staging"
    BUILDING = "building"
    UNAVAILABLE = "unavailable"
    """Its MCP server no longer lists it."""


class PermissionClass(StrEnum):
    """What kind of right a call needs."""

    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"


class SideEffectScope(StrEnum):
    """What a call may change."""

    NONE = "none"
    LOCAL_STATE = "local_state"
    DB_WRITE = "db_write"
    NETWORK = "network"


class SchedulingMode(StrEnum):
    """How long a host keeps a tool running."""

    HOT = "hot"
    """Runs before its first call, as far as there is room."""
    COLD = "cold"
    """Runs from a call on, until it was unused for a while."""
    STATELESS = "stateless"
    """Runs only during calls."""


class TaskSupport(StrEnum):
    """Whether an MCP client may make a call as a task, whose end it polls for."""

    FORBIDDEN = "forbidden"
    OPTIONAL = "optional"
    REQUIRED = "required"


class FileAccess(Contract):
    model_config = CAMEL_CASE

    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()


class NetworkAccess(Contract):
    model_config = CAMEL_CASE

    allow_hosts: tuple[str, ...] = ()


class SecurityContext(Contract):
    """The rights that a tool asks for. The sandbox grants at most these."""

    model_config = CAMEL_CASE

    file_access: FileAccess = FileAccess()
    network_access: NetworkAccess = NetworkAccess()
    required_capabilities: tuple[str, ...] = ()
    environment: tuple[EnvironmentName, ...] = ()
    """Environment variables of the host that it reads."""
    limits: SandboxLimits = SandboxLimits()

    @property
    def asked(self) -> SandboxGrant:
        """The same as a request to the sandbox."""
        return SandboxGrant(
            read=self.file_access.allow_read,
            write=self.file_access.allow_write,
            hosts=self.network_access.allow_hosts,
            environment=self.environment,
            limits=self.limits,
        )


class ToolExample(Contract):
    """One call and, if known, its output."""

    model_config = CAMEL_CASE

    description: str = ""
    input: dict[str, JsonValue] = {}
    expected_output: JsonValue = None


class ToolDependency(Contract):
    """A tool that another tool calls."""

    model_config = CAMEL_CASE

    tool_id: ToolId
    version: Annotated[str, Field(min_length=1, max_length=64)] = "*"
    """A version, or a range by the rules of npm: `^1.2`."""


class ToolManifest(Contract):
    """The manifest of a tool. By default, a tool is assumed to change anything."""

    tool_id: ToolId
    name: ShortText
    description: str = ""
    version: SemVer = "1.0.0"
    category: Annotated[str, Field(min_length=1, max_length=64)] = "custom"
    backend_runtime: BackendRuntime = BackendRuntime.LOCAL
    group_ids: tuple[GroupId, ...] = ()
    tool_slug_ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    input_schema: JsonSchema = {}
    output_schema: JsonSchema = {}
    stream_support: bool = False
    status: ToolStatus = ToolStatus.ACTIVE
    permission_class: PermissionClass = PermissionClass.EXTERNAL
    side_effect_scope: SideEffectScope = SideEffectScope.NETWORK
    requires_confirmation: bool = False
    security_context: Annotated[SecurityContext, Field(alias="securityContext")] = SecurityContext()
    examples: tuple[ToolExample, ...] = ()
    idempotent: bool | None = None
    """A repeated call has no further effect; unset: true if it has no side effects."""
    timeout_s: UpToADay = 30.0
    """Seconds that one call may take."""
    test_mode: Annotated[dict[str, JsonValue] | None, Field(min_length=1)] = None
    """Parameters that keep a call from changing anything, whatever the others are; unset: there are none."""
    cost_usd: NonNegativeFloat = 0.0
    """The price of one call in US dollars."""
    cache_ttl_s: NonNegativeFloat = 0.0
    """Seconds for which a result may be reused; 0: never."""
    bucket: Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9_-]*$")] = None
    """The bucket whose slots a call takes; unset: that of its category."""
    concurrency: AtLeastOne | None = None
    """Calls of this tool at once on one host; unset: no limit."""
    scheduling_mode: SchedulingMode | None = None
    """`hot`: runs before its first call; unset: `cold`, stopped when unused."""
    task_support: TaskSupport | None = None
    """Whether MCP clients may call it as a task; unset: `optional`."""

    dependencies: tuple[ToolDependency, ...] = ()
    """Tools that it needs. Without them a call is refused."""
    external_source: str | None = None
    """The external tool table that it comes from; null for our own tools."""

    @property
    def repeatable(self) -> bool:
        """Whether a call may be sent again if the outcome of the first is unknown."""
        return self.idempotent if self.idempotent is not None else self.side_effect_scope is SideEffectScope.NONE
