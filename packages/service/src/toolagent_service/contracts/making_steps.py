"""Inputs and outputs of the activities of a task.

Candidates and messages are in the store.
"""

from datetime import datetime

from toolagent.contracts.contract import Contract
from toolagent.contracts.making import Evidence, Inspection, MakeRequest, Stage, Tried
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.agent import AgentRequest
from toolagent_service.contracts.blanks import Blank
from toolagent_service.contracts.plans import BuildPlan


class TaskStep(Contract):
    """A step that needs only the task."""

    task_id: str
    spec: TaskSpec


class Slot(Contract):
    """Permission to work on a task, and the host for it, which has its folders and containers."""

    host: str
    patience_s: float = 150.0
    """How long a step waits for the host before the host is checked."""


class AgentStart(Contract):
    """The input of an agent, and the host with its files."""

    request: AgentRequest
    slot: Slot


class HostStep(Contract):
    """A task whose host did not take a step in time. `moves`: whether it can continue without its files."""

    task_id: str
    host: str
    moves: bool = True


class StageStep(Contract):
    """The task enters this stage. `went_well`: whether the stage before succeeded."""

    request: MakeRequest
    stage: Stage
    went_well: bool = True


class ExistingTool(Contract):
    """An existing tool that may fulfil the request, and can be tried without harm."""

    tool_id: str
    version: str


class Inspected(Contract):
    """`answered_by` is a tool or a group that already fulfils the request; `refused` says why the repository cannot be fetched."""

    inspection: Inspection = Inspection()
    answered_by: str | None = None
    tool_ids: tuple[str, ...] = ()
    """The tools of that group."""
    takers: tuple[ExistingTool, ...] = ()
    """Tools to try with the examples, the likeliest first."""
    refused: Blank = None


class FailedCall(Contract):
    """A failed call of the tool. Parameters and details are JSON texts, with secrets masked and long values cut."""

    call_id: str
    at: datetime
    version: str
    params: str = ""
    error_type: Blank = None
    message: str = ""
    details: Blank = None


class Diagnosis(Contract):
    """Facts about the tool to repair, or in `refused` why it cannot be repaired here. All texts are bounded."""

    refused: Blank = None
    version: str = ""
    """The version to repair: the active one."""
    content: Blank = None
    """The archive of its files."""
    folder: str = ""
    """The copy of its files, as a path for the agent."""
    manifest: str = ""
    """Its manifest and source, as JSON."""
    last_error: Blank = None
    """Why its process last ended by itself."""
    log: str = ""
    """The end of its log on the host of the task."""
    failed_calls: tuple[FailedCall, ...] = ()
    """The latest failed calls, the newest first."""
    notes: tuple[str, ...] = ()
    """Problems while gathering these facts."""


class BuildStep(TaskStep):
    plan: BuildPlan


class BuildOutcome(Contract):
    """The candidate, by the id of its file in the content store, or why there is none, with the output of the build."""

    candidate: str | None = None
    reason: str = ""
    told: Blank = None
    left_out: tuple[str, ...] = ()
    """Other possible tools, each with the reason why it is left out."""

    @property
    def why(self) -> str:
        return f"{self.reason}\n{self.told or ''}".strip()


class BriefStep(TaskStep):
    """Information for the coding agent besides the task."""

    inspection: Inspection = Inspection()
    notes: tuple[str, ...] = ()
    """Why it could not be built without the agent."""
    diagnosis: Diagnosis | None = None
    """For a repair."""


class VerifyStep(TaskStep):
    """`mends` is the version that the candidate replaces; empty for a new tool. `commit` is that of its repository."""

    candidate: str
    round: int = 1
    mends: Blank = None
    commit: Blank = None


class Assessed(Contract):
    """The result of the gate. `for_the_maker` says what failed, in words to act on; empty if nothing did."""

    evidence: Evidence
    for_the_maker: Blank = None
    candidate: str | None = None
    """The part of the candidate that passed; null: all of it."""


class RegisterStep(TaskStep):
    """`mends` as in `VerifyStep`; `mends_content` is the archive of the files that the candidate was made from."""

    candidate: str
    evidence: Evidence
    mends: Blank = None
    mends_content: Blank = None


class Registered(Contract):
    """The tools that can be called now, or why they cannot."""

    tool_ids: tuple[str, ...] = ()
    refused: Blank = None


class EndStep(Contract):
    """How a task ended."""

    request: MakeRequest
    status: TaskState
    reason: str = ""
    tool_ids: tuple[str, ...] = ()
    evidence: Evidence | None = None
    tried: tuple[Tried, ...] = ()
