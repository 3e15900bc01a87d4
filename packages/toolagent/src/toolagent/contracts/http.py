"""Answers of the front door over HTTP."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.calls import ToolError
from toolagent.contracts.contract import Contract, JsonSchema
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.lanes import LaneCounts
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.records import CatalogFault, Event
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sessions import SessionView
from toolagent.contracts.sources import HttpMethod, ToolSource
from toolagent.contracts.tasks import TaskState, TaskView

__all__ = [
    "BriefMatches",
    "BriefTool",
    "FoundTool",
    "GroupListing",
    "Health",
    "ListedTool",
    "LoopPause",
    "Matches",
    "Parameter",
    "Problem",
    "ProblemField",
    "RuntimeCount",
    "SearchDetail",
    "Selection",
    "SessionListing",
    "StoppedTool",
    "Task",
    "TaskAccepted",
    "ToolDestroyed",
    "ToolDetail",
    "ToolListing",
    "ToolStarted",
    "ToolStates",
]


class LoopPause(Contract):
    """The longest pause of the event loop in the last `window_s` seconds, and when it ended."""

    longest_pause_s: float = 0.0
    at: datetime | None = None
    window_s: float


class Health(Contract):
    """Each check is `ok` or a reason. `docker` does not affect the status, because only docker tools need it."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str]
    loop: LoopPause | None = None
    """Pauses of the event loop of the front door's process."""
    lane: LaneCounts | None = None
    """Counts of the lane of this front door; null if lanes are off."""


class RuntimeCount(Contract):
    """A backend runtime and its number of tools."""

    backend_runtime: BackendRuntime
    name: str
    tool_count: int


class ListedTool(Contract):
    """One line of the list of tools."""

    tool_id: str
    name: str
    description: str
    category: str
    backend_runtime: BackendRuntime
    group_ids: tuple[str, ...]
    state: RunState
    status: ToolStatus
    version: str
    tags: tuple[str, ...]
    external_source: str | None = None
    """The external tool table that it comes from; null for our own tools."""


class ToolListing(Contract):
    """All tools, and faults of the catalog."""

    backend_runtimes: tuple[RuntimeCount, ...]
    groups: tuple[ToolGroup, ...]
    tools: tuple[ListedTool, ...]
    catalog_faults: tuple[CatalogFault, ...]


class ToolDetail(ToolManifest):
    """A tool, its sources and its running state."""

    sources: tuple[ToolSource, ...]
    route: ToolRoute


class ToolStates(Contract):
    """The running state of each tool. A tool that runs on several hosts has one entry for each."""

    tools: tuple[ToolRoute, ...]


class Parameter(Contract):
    """One parameter of a tool. `type` lists its JSON types; `any` if the schema has none."""

    name: str
    type: str
    description: str
    required: bool


class FoundTool(Contract):
    """A tool in the results of a search. Fields that its source or state lacks are null."""

    tool_id: str
    name: str
    category: str
    description: str
    params: tuple[Parameter, ...]
    required_params: tuple[str, ...]
    input_schema: JsonSchema
    output_schema: JsonSchema
    backend_runtime: BackendRuntime
    host_dir: str | None
    endpoint_path: str | None
    http_method: HttpMethod | None
    state: RunState
    port: int | None
    """Null if it has none: a sandboxed tool is reached by its `endpoint` alone."""
    pid: int | None
    version: str = ""
    endpoint: str | None = None
    external_source: str | None = None
    """The external tool table that it comes from; null for our own tools."""


class Matches(Contract):
    """The results of a search, the best first. `total` is without the limit."""

    tools: tuple[FoundTool, ...]
    total: int


class SearchDetail(StrEnum):
    """How much of each tool a search shows."""

    COMPACT = "compact"
    FULL = "full"


class BriefTool(Contract):
    """A tool as one line in the context of a model."""

    tool_id: str
    name: str
    description: str
    """Its first 200 characters."""
    category: str
    params: tuple[str, ...]
    """Names of its parameters: required ones first, the others with a `?`."""
    external_source: str | None = None
    """The external tool table that it comes from; null for our own tools."""


class BriefMatches(Contract):
    """The results of a search, in short."""

    tools: tuple[BriefTool, ...]
    total: int


class Selection(Contract):
    """How a call ended."""

    status: Literal["success", "error"]
    result: JsonValue
    error: ToolError | None


class TaskAccepted(Contract):
    """The call runs. Ask for it under this id."""

    task_id: str
    status: TaskState


class Task(TaskView):
    """The state of a task, and its events."""

    events: tuple[Event, ...] = ()


class ToolStarted(Contract):
    tool_id: str
    state: RunState
    port: int | None
    pid: int | None
    endpoint: str | None


class StoppedTool(Contract):
    tool_id: str
    state: RunState


class ToolDestroyed(StoppedTool):
    destroyed: Literal[True] = True


class GroupListing(Contract):
    """All groups, by id."""

    groups: tuple[ToolGroup, ...]


class SessionListing(Contract):
    sessions: tuple[SessionView, ...]


class ProblemField(Contract):
    """One fault of a request, with its place."""

    field: str
    """A dotted path into the body, or the name of a header; `body` is the whole body."""
    message: str


class Problem(Contract):
    """Why a request was refused: `application/problem+json` (RFC 9457). `details` depends on `type`."""

    type: str
    """Names the problem for a program; one of a closed set."""
    title: str
    """Names it for a person."""
    status: int
    """The HTTP status."""
    detail: str = ""
    """The cause, and the remedy where there is one."""
    errors: tuple[ProblemField, ...] = ()
    details: JsonValue = None
