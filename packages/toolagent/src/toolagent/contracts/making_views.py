"""Answers of the front door about tasks that make or repair tools."""

from datetime import datetime

from toolagent.contracts.contract import Contract
from toolagent.contracts.making import AllTried, Evidence, Stage, StageView
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState

__all__ = ["ListedTask", "MakingTask", "TaskListing", "TaskSubmitted"]


class TaskSubmitted(Contract):
    """The task was accepted. Ask for it under this id."""

    task_id: str
    status: TaskState
    message: str


class ListedTask(Contract):
    """A task in the list of tasks, and in the event of a change. `reason` says how it ended."""

    task_id: str
    status: TaskState
    type: str
    tool_id: str
    description: str
    stage: Stage | None
    progress: str
    reason: str
    cost_usd: float
    """The cost of the turns with a known price."""
    tokens: int
    unpriced_turns: int = 0
    """Turns of the model with an unknown price: their cost comes on top."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None


class TaskListing(Contract):
    """Tasks, the newest first. `next` is the value of `before` for the next page; null if there is none."""

    tasks: tuple[ListedTask, ...]
    next: str | None = None


class MakingTask(ListedTask):
    """A task in detail. `log` has the last lines of its log."""

    result: str | None
    """The outcome in a sentence; null while it runs."""
    task_spec: TaskSpec
    tool_ids: tuple[str, ...]
    """The tools that fulfil the request."""
    built: bool = False
    """Whether the task made these tools. Otherwise they existed before."""
    stages: tuple[StageView, ...]
    log: tuple[str, ...]
    evidence: Evidence | None
    tried: AllTried = ()
