"""What the steps of a task hand to each other: the inputs and outputs of its activities. Candidates and messages lie in the store."""

from datetime import datetime

from toolagent.contracts.contract import Contract
from toolagent.contracts.making import Evidence, Inspection, MakeRequest, Stage, Tried
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.agent import AgentRequest
from toolagent_service.contracts.blanks import Blank
from toolagent_service.contracts.plans import BuildPlan


class TaskStep(Contract):
    """A step that needs to know nothing but its task."""

    task_id: str
    spec: TaskSpec


class Slot(Contract):
    """Leave to work on a task, and the host it is done on: its folders and containers are there."""

    host: str
    patience_s: float = 150.0
    """How long a step waits for the host before somebody asks whether that is alive."""


class AgentStart(Contract):
    """What an agent is started with, and where its files are."""

    request: AgentRequest
    slot: Slot


class HostStep(Contract):
    """A task whose host has not taken a step in time. `moves`: whether it can go on where nothing of it is."""

    task_id: str
    host: str
    moves: bool = True


class StageStep(Contract):
    """The task is at this stage now. `went_well`: whether the stage before it did."""

    request: MakeRequest
    stage: Stage
    went_well: bool = True


class ExistingTool(Contract):
    """A tool that may already do what is asked for, and that can be tried without harm."""

    tool_id: str
    version: str


class Inspected(Contract):
    """`answered_by` is a tool or a group that does already what is asked for; `refused` says why the repository cannot be had."""

    inspection: Inspection = Inspection()
    answered_by: str | None = None
    tool_ids: tuple[str, ...] = ()
    """The tools of that group."""
    takers: tuple[ExistingTool, ...] = ()
    """Tools to be tried with the examples, the likeliest first."""
    refused: Blank = None


class FailedCall(Contract):
    """A call that the tool got wrong: parameters and details as JSON text; secrets are masked, and what is long is cut."""

    call_id: str
    at: datetime
    version: str
    params: str = ""
    error_type: Blank = None
    message: str = ""
    details: Blank = None


class Diagnosis(Contract):
    """What is known of a tool that is to be mended; or, in `refused`, why nobody can mend it here. All texts are bounded."""

    refused: Blank = None
    version: str = ""
    """The version that is to be mended: the active one."""
    content: Blank = None
    """The archive of its files, of which the copy was made."""
    folder: str = ""
    """Where the copy of its files is, as the agent sees it."""
    manifest: str = ""
    """What it says of itself and how it is called, as JSON."""
    last_error: Blank = None
    """Why it ended the last time it did so by itself."""
    log: str = ""
    """The end of what it wrote on the host of the task."""
    failed_calls: tuple[FailedCall, ...] = ()
    """The latest, newest first."""
    notes: tuple[str, ...] = ()
    """What went wrong while all this was gathered."""


class BuildStep(TaskStep):
    plan: BuildPlan


class BuildOutcome(Contract):
    """The candidate, by the id of its file in the content store, or why there is none and what was written on the way."""

    candidate: str | None = None
    reason: str = ""
    told: Blank = None
    left_out: tuple[str, ...] = ()
    """Other possible tools, each with the reason why it is left out."""

    @property
    def why(self) -> str:
        return f"{self.reason}\n{self.told or ''}".strip()


class BriefStep(TaskStep):
    """What the coding agent is to know besides the task."""

    inspection: Inspection = Inspection()
    notes: tuple[str, ...] = ()
    """Why it was not built without it."""
    diagnosis: Diagnosis | None = None
    """Of a repair."""


class VerifyStep(TaskStep):
    """`mends` is the version that the candidate is to take over from; empty for a new tool. `commit` is that of a repository."""

    candidate: str
    round: int = 1
    mends: Blank = None
    commit: Blank = None


class Assessed(Contract):
    """What the gate saw. `for_the_maker` says what did not hold, in words to act on; empty when all did."""

    evidence: Evidence
    for_the_maker: Blank = None
    candidate: str | None = None
    """What passed, where that is less than what was built; else null."""


class RegisterStep(TaskStep):
    """`mends` as in `VerifyStep`; `mends_content` is the archive of its files that the candidate was made from."""

    candidate: str
    evidence: Evidence
    mends: Blank = None
    mends_content: Blank = None


class Registered(Contract):
    """The tools that can be called now; or why they cannot."""

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
