"""Making a tool: stages, findings, the candidate, and the evidence that it works."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolagent.contracts.calls import Caller
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ShortText
from toolagent.contracts.manifest import ToolGroup
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState

__all__ = [
    "AllTried",
    "Candidate",
    "CheckResult",
    "Evidence",
    "Finding",
    "FindingKind",
    "Guidance",
    "Inspection",
    "MakeEnd",
    "MakeRequest",
    "MakeTask",
    "Stage",
    "StageView",
    "TaskNote",
    "TaskNoteKind",
    "Tried",
]


class Stage(StrEnum):
    """The stages of a task, in order."""

    INSPECT = "inspect"
    PLAN = "plan"
    BUILD = "build"
    VERIFY = "verify"
    REGISTER = "register"
    ANNOUNCE = "announce"


class StageView(Contract):
    stage: Stage
    state: Literal["running", "done", "failed", "cancelled"]
    started_at: datetime
    ended_at: datetime | None = None
    cost_usd: float = 0.0


class Tried(Contract):
    """One way to make a tool of a repository, and its outcome."""

    way: str
    """The way of a plan: `tool_file`, `mcp`, `asgi`, `docker`, `program`, `openapi_remote`, `coding`."""
    found: str = ""
    """What was recognised, and where; empty if nothing was."""
    outcome: Literal["passed", "failed", "not_possible", "not_found"]
    reason: str = ""
    """Why it failed or is not possible."""


AllTried = Annotated[tuple[Tried, ...], Field(description="The ways to a tool of a repository, in the order in which they were tried.")]
_Key = Annotated[str, Field(description="The hash of caller and idempotency key; empty without one.")]


class MakeRequest(Contract):
    """The input of a task. Which examples are withheld follows from the task's id, and is never sent."""

    task_id: str
    spec: TaskSpec
    description: str = ""
    """The request in the caller's words."""
    caller: Caller = Caller()
    key: _Key = ""


class FindingKind(StrEnum):
    """Kinds of things that are recognised in a repository without a model."""

    TOOL_FILE = "tool_file"
    OPENAPI = "openapi"
    ASGI = "asgi"
    WSGI = "wsgi"
    GRADIO = "gradio"
    DOCKERFILE = "dockerfile"
    CONSOLE_SCRIPT = "console_script"
    MCP_SERVER = "mcp_server"
    NODE_APP = "node_app"


class Finding(Contract):
    """One thing that was recognised. `path` is in the repository; `details` depend on the recogniser (module, port, …)."""

    kind: FindingKind
    path: str
    summary: str
    details: dict[str, JsonValue] = {}


class Inspection(Contract):
    """The contents of a repository. `content` names its files in the content store; `commit` is the cloned one."""

    content: str | None = None
    commit: str = ""
    findings: tuple[Finding, ...] = ()
    files: int = 0
    """Number of files."""
    size: int = 0
    """Bytes of all files."""
    readme: str = ""
    """The beginning of its README."""
    code_files: int = 0
    """Number of files with source code, in any language."""
    dropped: tuple[str, ...] = ()
    """Links out of the repository, which were removed."""
    is_whole: bool = True
    """Whether all its files were examined."""


_LeftOut = Annotated[tuple[str, ...], Field(description="Other possible tools, each with the reason why it is left out.")]
_Notes = Annotated[tuple[str, ...], Field(description="Requirements that did not fit (versions, the Python), and what was chosen instead.")]


class Candidate(Contract):
    """The result of a build: tools that are not registered yet, and their group if there are several."""

    entries: tuple[ToolEntry, ...]
    group: ToolGroup | None = None
    written_by_us: bool = False
    """Whether our launcher serves it. Then it has to answer on /health."""
    locks: dict[str, str] = {}
    """Locks of tools with a locked environment, by tool id: see `Evidence.lock`."""
    left_out: _LeftOut = ()
    notes: _Notes = ()


class CheckResult(Contract):
    """One check of the gate and its result. `details` say what was seen, in words an agent can act on."""

    check: str
    passed: bool
    details: str = ""
    seconds: float = 0.0
    applies: bool = True
    """Whether the check was made. If not, `details` say why."""
    faults: dict[str, str] = {}
    """Faults by tool; empty: the fault concerns all of them."""


class Evidence(Contract):
    """The evidence for a version, kept with it."""

    task_id: str
    at: datetime
    source: str | None = None
    """The hash of its files."""
    commit: str = ""
    """The commit of its repository; empty without one."""
    lock: str | None = None
    """The SHA-256 of the file with the lock that its environment is built from."""
    provider: str | None = None
    """The provider of the model; null: no model took part."""
    model: str | None = None
    """The requested model."""
    answered_by: tuple[str, ...] = ()
    """The names of the model in its answers."""
    prompts: tuple[str, ...] = ()
    """The prompts of the model, as `name@hash`."""
    behaviour: Literal["verified", "unverified"] = "unverified"
    """`verified`: it passed examples that its maker had never seen."""
    checks: tuple[CheckResult, ...] = ()
    left_out: _LeftOut = ()
    notes: _Notes = ()
    rounds: int = 1
    turns: int = 0
    """Turns of the model until then."""
    tokens: int = 0
    """Tokens that the turns read and wrote."""
    cost_usd: float = 0.0
    """The cost of the turns with a known price."""
    lost_turns: int = 0
    """Turns that broke off and were repeated. They are paid for too."""
    unpriced_turns: int = 0
    """Turns with an unknown price."""
    seconds: float = 0.0
    """Duration of the gate."""
    total_seconds: float = 0.0
    """From the start of the task to the end of the gate."""


class TaskNoteKind(StrEnum):
    """Kinds of lines in the log of a task. Those in capitals belong to the coding log."""

    START = "start"
    STAGE = "stage"
    BUILD = "build"
    TEXT = "TEXT"
    TOOL_USE = "TOOL_USE"
    TOOL_RESULT = "TOOL_RESULT"
    DONE = "DONE"
    GUIDANCE = "guidance"
    PROGRESS = "progress"
    COST = "cost"
    TOOL_REQUEST = "tool_request"
    TOOL_READY = "tool_ready"
    TOOL_ERROR = "tool_error"
    HEALTH_ALERT = "health_alert"


class TaskNote(Contract):
    """One event of a task. `position` counts from 1 without gaps; `text` is a line of the coding log."""

    task_id: str
    position: int
    at: datetime
    kind: TaskNoteKind
    text: str
    payload: JsonValue = None


class MakeTask(Contract):
    """A task as it is stored. `reason` says how it ended, in words a person can act on."""

    task_id: str
    status: TaskState
    spec: TaskSpec
    description: str = ""
    tool_id: str
    tool_ids: tuple[str, ...] = ()
    """The tools that fulfil the request: made by the task, or existing before."""
    stage: Stage | None = None
    stages: tuple[StageView, ...] = ()
    progress: str = ""
    reason: str = ""
    cost_usd: float = 0.0
    """The cost of the turns with a known price."""
    tokens: int = 0
    unpriced_turns: int = 0
    """Turns of the model with an unknown price."""
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    evidence: Evidence | None = None
    tried: AllTried = ()
    caller: Caller = Caller()
    key: _Key = ""


class MakeEnd(Contract):
    """How a task ended: the result of its workflow."""

    task_id: str
    status: TaskState
    tool_ids: tuple[str, ...] = ()
    """The tools that fulfil the request: made by the task, or existing before."""
    reason: str = ""
    """How it ended, in words a person can act on."""
    tried: AllTried = ()


class Guidance(Contract):
    """A message of a person to a running agent. The same `id` counts once."""

    id: ShortText
    text: Annotated[str, Field(min_length=1, max_length=4_000)]
