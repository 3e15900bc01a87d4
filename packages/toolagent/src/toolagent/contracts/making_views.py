"""What the front door answers about tasks that make or repair tools."""

from datetime import datetime

from toolagent.contracts.contract import Contract
from toolagent.contracts.making import AllTried, Evidence, Stage, StageView
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState

__all__ = ["ListedTask", "MakingTask", "TaskListing", "TaskSubmitted"]


class TaskSubmitted(Contract):
    """The task is taken and goes on by itself; ask for it under this id."""

    task_id: str
    status: TaskState
    message: str


class ListedTask(Contract):
    """One line of the list of tasks, and what a follower is told when it changes. `reason` says how it ended."""

    task_id: str
    status: TaskState
    type: str
    tool_id: str
    description: str
    stage: Stage | None
    progress: str
    reason: str
    cost_usd: float
    """Of the turns whose price is known."""
    tokens: int
    unpriced_turns: int = 0
    """Turns of the model whose price is not known: what they cost comes on top."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None


class TaskListing(Contract):
    """Tasks, the newest first. `next` is what to give as `before` for those that follow; null where there are none."""

    tasks: tuple[ListedTask, ...]
    next: str | None = None


class MakingTask(ListedTask):
    """A task, and how far it is. `log` is the end of its log, line by line."""

    result: str | None
    """What came of it, in a sentence; null while it goes on."""
    task_spec: TaskSpec
    tool_ids: tuple[str, ...]
    """The tools that do what was asked for."""
    built: bool = False
    """Whether it made those tools; otherwise they existed before, and belong to another task."""
    stages: tuple[StageView, ...]
    log: tuple[str, ...]
    evidence: Evidence | None
    tried: AllTried = ()
