"""What comes in and goes out: request bodies that refuse what they do not know, and answers."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from toolagent.contracts.calls import Caller, CallMode, ToolCall, ToolError
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.manifest import JsonSchema, ToolGroup, ToolManifest, ToolStatus
from toolagent.contracts.records import CatalogFault, Event
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sources import BackendRuntime, HttpMethod, ToolSource
from toolagent.contracts.tasks import TaskState, TaskView

__all__ = [
    "CallerBody",
    "FoundTool",
    "Health",
    "ListedTool",
    "Matches",
    "Parameter",
    "RunToolBody",
    "RuntimeCount",
    "SearchToolsBody",
    "SelectToolBody",
    "Selection",
    "StoppedTool",
    "Task",
    "TaskAccepted",
    "ToolDestroyed",
    "ToolDetail",
    "ToolListing",
    "ToolStarted",
    "ToolStates",
]

_STRICT = ConfigDict(extra="forbid", strict=True)
# A control character is of no use in a name, and NUL is one that databases refuse.
_Plain = Field(pattern=r"^[^\x00-\x1f\x7f]*$")
_PARAMS: JsonValue = {"text": "春天来了。花开了。", "max_length": 8}


def _strict(*examples: JsonValue) -> ConfigDict:
    return _STRICT | ConfigDict(json_schema_extra={"examples": [*examples]})


class CallerBody(Caller):
    """Who asks, and on whose behalf."""

    model_config = _STRICT

    caller_id: Annotated[str | None, Field(max_length=200), _Plain] = None
    caller_type: Annotated[str, Field(max_length=64, description="conversation_agent, workflow_node, direct or unknown"), _Plain] = (
        "unknown"
    )
    conversation_id: Annotated[str | None, Field(max_length=200), _Plain] = None


class RunToolBody(ToolCall):
    """A call. The header `Idempotency-Key` may stand for `idempotency_key`."""

    model_config = _strict(
        {"tool_id": "text_summarizer_api", "params": _PARAMS},
        {"tool_id": "echo", "params": {"text": "hello"}, "mode": "async", "idempotency_key": "order-17", "timeout_s": 10},
    )

    version: Annotated[str | None, Field(max_length=64, description="An exact version; unset: the active one."), _Plain] = None
    mode: Annotated[CallMode, Field(strict=False)] = CallMode.SYNC
    caller: CallerBody = CallerBody()  # pyright: ignore[reportIncompatibleVariableOverride] - frozen, so narrowing is sound


class SelectToolBody(Contract):
    """A call, in the form of seed 001 §7."""

    model_config = _strict({"tool_id": "text_summarizer_api", "params": _PARAMS})

    tool_id: ToolId
    params: dict[str, JsonValue] = {}
    stream: bool = False


class SearchToolsBody(Contract):
    """Every word of `keyword` must occur in a tool's id, name, tags, category or description."""

    model_config = _strict({"keyword": "图片", "category": "cv"})

    keyword: Annotated[str | None, Field(max_length=500)] = None
    category: Annotated[str | None, Field(max_length=64), _Plain] = None


class Health(Contract):
    """Each check is `ok` or the reason why not."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str]


class RuntimeCount(Contract):
    """One of the three backend runtimes, and how many tools it has."""

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


class ToolListing(Contract):
    """All tools there are (seed 000 §4.1), and what of the catalog could not be used."""

    backend_runtimes: tuple[RuntimeCount, ...]
    groups: tuple[ToolGroup, ...]
    tools: tuple[ListedTool, ...]
    catalog_faults: tuple[CatalogFault, ...]


class ToolDetail(ToolManifest):
    """A tool, where it can be run from and how it runs now."""

    sources: tuple[ToolSource, ...]
    route: ToolRoute


class ToolStates(Contract):
    """How each tool runs (seed 001 §7); a tool that runs on several hosts has one entry for each."""

    tools: tuple[ToolRoute, ...]


class Parameter(Contract):
    """One parameter of a tool; `type` lists its JSON types, `any` when the schema does not say."""

    name: str
    type: str
    description: str
    required: bool


class FoundTool(Contract):
    """A tool as a search shows it (seed 001 §7). What its source or its state does not have is null."""

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
    pid: int | None


class Matches(Contract):
    """What a search found, the best first."""

    tools: tuple[FoundTool, ...]
    total: int


class Selection(Contract):
    """How a call ended, in the form of seed 001 §7."""

    status: Literal["success", "error"]
    result: JsonValue
    error: ToolError | None


class TaskAccepted(Contract):
    """The call goes on; ask for it under this id."""

    task_id: str
    status: TaskState


class Task(TaskView):
    """How far a task is, and what has happened in it."""

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
