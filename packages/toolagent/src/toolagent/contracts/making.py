"""How a tool is made: stages, what was found, what was built, and the evidence that it works."""

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
    """The way of a tool, in order."""

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
    """One way to a tool of a repository: what was found for it, and what came of it."""

    way: str
    """As in a plan: `tool_file`, `mcp`, `asgi`, `docker`, `program`, `openapi_remote`, `coding`."""
    found: str = ""
    """What was recognised, and where; empty: nothing."""
    outcome: Literal["passed", "failed", "not_possible", "not_found"]
    reason: str = ""
    """Why it was not enough."""


AllTried = Annotated[tuple[Tried, ...], Field(description="The ways to a tool of a repository, in the order in which they were tried.")]
_Key = Annotated[str, Field(description="The hash of caller and idempotency key; empty without one.")]


class MakeRequest(Contract):
    """A task as it is started. What is withheld of the examples is decided from the task's id, never sent along."""

    task_id: str
    spec: TaskSpec
    description: str = ""
    """What was asked for, in the caller's words."""
    caller: Caller = Caller()
    key: _Key = ""


class FindingKind(StrEnum):
    """What a repository was recognised as, without a model."""

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
    """One thing that was recognised. `path` is in the repository; `details` are the recogniser's own (module, port, …)."""

    kind: FindingKind
    path: str
    summary: str
    details: dict[str, JsonValue] = {}


class Inspection(Contract):
    """What a repository holds. `content` names its files in the content store; `commit` is what was cloned."""

    content: str | None = None
    commit: str = ""
    findings: tuple[Finding, ...] = ()
    files: int = 0
    """How many files it has."""
    size: int = 0
    """Bytes of all its files."""
    readme: str = ""
    """The beginning of what its README says."""
    code_files: int = 0
    """How many of them are source code, in any language."""
    dropped: tuple[str, ...] = ()
    """Links that led out of it, which were taken away."""
    is_whole: bool = True
    """Otherwise it has more files than were looked at."""


_LeftOut = Annotated[tuple[str, ...], Field(description="What could have been a tool too, each with why it is none.")]
_Notes = Annotated[
    tuple[str, ...], Field(description="What of its environment did not fit (versions, the Python), and what was chosen instead.")
]


class Candidate(Contract):
    """What a build gave: tools that are not registered yet, and the group they form when they are several."""

    entries: tuple[ToolEntry, ...]
    group: ToolGroup | None = None
    written_by_us: bool = False
    """Then it has to answer on /health."""
    locks: dict[str, str] = {}
    """Of tools with a locked environment, by their ids: see `Evidence.lock`."""
    left_out: _LeftOut = ()
    notes: _Notes = ()


class CheckResult(Contract):
    """One question of the gate and its answer; `details` say what was seen, in words an agent can act on."""

    check: str
    passed: bool
    details: str = ""
    seconds: float = 0.0
    applies: bool = True
    """Otherwise it was not asked, and `details` say why."""
    faults: dict[str, str] = {}
    """What is wrong, by the tool that it is wrong with; empty: with all of them."""


class Evidence(Contract):
    """Why a version may be called, kept with it."""

    task_id: str
    at: datetime
    source: str | None = None
    """The hash of its files."""
    commit: str = ""
    """Of the repository that it was made of; empty where there is none."""
    lock: str | None = None
    """The SHA-256 of the file with the lock that its environment is built from."""
    provider: str | None = None
    """Of the model; null: none had a part in it."""
    model: str | None = None
    """As it was asked for."""
    answered_by: tuple[str, ...] = ()
    """What the model called itself in its answers."""
    prompts: tuple[str, ...] = ()
    """The prompts it was given, as `name@hash`."""
    behaviour: Literal["verified", "unverified"] = "unverified"
    """Verified: examples passed that its maker had never seen."""
    checks: tuple[CheckResult, ...] = ()
    left_out: _LeftOut = ()
    notes: _Notes = ()
    rounds: int = 1
    turns: int = 0
    """Turns of the model that the task took until then."""
    tokens: int = 0
    """All that they read and wrote."""
    cost_usd: float = 0.0
    """Of the turns whose price is known."""
    lost_turns: int = 0
    """Turns that broke off and were asked for again, paid for all the same."""
    unpriced_turns: int = 0
    """Turns whose price is not known."""
    seconds: float = 0.0
    """How long the gate took."""
    total_seconds: float = 0.0
    """From when the task began to run until the gate had ended."""


class TaskNoteKind(StrEnum):
    """What a line of a task's log is about; the capital ones are of the coding log."""

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
    """One thing that happened in a task. `position` counts from 1 without gaps; `text` is a line of the coding log."""

    task_id: str
    position: int
    at: datetime
    kind: TaskNoteKind
    text: str
    payload: JsonValue = None


class MakeTask(Contract):
    """A task as it is remembered. `reason` says how it ended, in words a person can act on."""

    task_id: str
    status: TaskState
    spec: TaskSpec
    description: str = ""
    tool_id: str
    tool_ids: tuple[str, ...] = ()
    """The tools that do what was asked for: made by it, or there before."""
    stage: Stage | None = None
    stages: tuple[StageView, ...] = ()
    progress: str = ""
    reason: str = ""
    cost_usd: float = 0.0
    """Of the turns whose price is known."""
    tokens: int = 0
    unpriced_turns: int = 0
    """Turns of the model whose price is not known."""
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
    """The tools that do what was asked for: made by it, or there before."""
    reason: str = ""
    """How it ended, in words a person can act on."""
    tried: AllTried = ()


class Guidance(Contract):
    """What a person says to an agent at work. The same `id` is heard once."""

    id: ShortText
    text: Annotated[str, Field(min_length=1, max_length=4_000)]
