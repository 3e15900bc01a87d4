"""What the steps of a task hand to each other: the inputs and outputs of its activities. Candidates and messages lie in the store."""

from typing import Annotated

from pydantic import Field

from toolagent.contracts.contract import Contract
from toolagent.contracts.making import Evidence, Inspection, MakeRequest, Stage
from toolagent.contracts.plans import BuildPlan
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState

__all__ = [
    "Assessed",
    "BriefStep",
    "BuildOutcome",
    "BuildStep",
    "EndStep",
    "Inspected",
    "MakeEnd",
    "RegisterStep",
    "Registered",
    "Slot",
    "StageStep",
    "TaskStep",
    "VerifyStep",
]


class TaskStep(Contract):
    """A step that needs to know nothing but its task."""

    task_id: str
    spec: TaskSpec


class Slot(Contract):
    """Leave to work on a task, and the host it is done on: its folders and containers are there. `rounds`: how often a build is judged."""

    host: str
    rounds: int = 3


class StageStep(Contract):
    """The task is at this stage now. `went_well`: whether the stage before it did."""

    request: MakeRequest
    stage: Stage
    went_well: bool = True


class Inspected(Contract):
    """`answered_by` is a tool that does already what is asked for; `refused` says why the repository cannot be had."""

    inspection: Inspection = Inspection()
    answered_by: str | None = None
    refused: str = ""


class BuildStep(Contract):
    task_id: str
    spec: TaskSpec
    plan: BuildPlan


class BuildOutcome(Contract):
    """The candidate, by the id of its file in the content store, or why there is none and what was written on the way."""

    candidate: str | None = None
    reason: str = ""
    told: str = ""


class BriefStep(Contract):
    """What the coding agent is to know besides the task."""

    task_id: str
    spec: TaskSpec
    inspection: Inspection = Inspection()
    notes: Annotated[tuple[str, ...], Field(description="Why it was not built without it.")] = ()


class VerifyStep(Contract):
    task_id: str
    spec: TaskSpec
    candidate: str
    round: int = 1


class Assessed(Contract):
    """What the gate saw. `for_the_maker` says what did not hold, in words to act on; empty when all did."""

    evidence: Evidence
    for_the_maker: str = ""


class RegisterStep(Contract):
    task_id: str
    spec: TaskSpec
    candidate: str
    evidence: Evidence


class Registered(Contract):
    """The tools that can be called now; or why they cannot."""

    tool_ids: tuple[str, ...] = ()
    refused: str = ""


class EndStep(Contract):
    """How a task ended."""

    request: MakeRequest
    status: TaskState
    reason: str = ""
    tool_ids: tuple[str, ...] = ()
    evidence: Evidence | None = None


class MakeEnd(Contract):
    """The result of the workflow of a task."""

    task_id: str
    status: TaskState
    tool_ids: tuple[str, ...] = ()
    reason: str = ""
