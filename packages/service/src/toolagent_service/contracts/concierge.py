"""Answers of the concierge."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from toolagent.contracts.agent_chat import AgentAnswer
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState

Language = Literal["en", "zh"]

_TRACKING: dict[Language, str] = {"en": "GET /tasks/{task_id} says how far it is", "zh": "使用 GET /tasks/{task_id} 查询进度"}


class Intent(StrEnum):
    """The intent of a message."""

    DISCOVER = "discover"
    LIST = "list"
    DETAILS = "details"
    GROUPS = "groups"
    RUNTIMES = "runtimes"
    STATUS = "status"
    MAKE = "make"
    REPAIR = "repair"
    AGREE = "agree"
    """Agrees to the offer of the turn before."""
    HELP = "help"
    THANKS = "thanks"
    UNDECIDED = "undecided"
    """No rule recognises it. A model decides better, if there is one."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """Earlier results of a conversation: the tools of the last answer with any, and its tasks, the newest first.

    `listed` are the tools of the last answer with several. `message` is that of the turn directly
    before, if rules answered it and started nothing.
    """

    tools: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    message: str = ""


class Reply(AgentAnswer):
    """A reply, and the `task` to submit, if any. `description` is then that of its request, and `reply` says that it was submitted."""

    intent: Intent
    language: Language
    task: TaskSpec | None = None
    description: str = ""

    @property
    def is_decided(self) -> bool:
        return self.intent is not Intent.UNDECIDED

    @property
    def tool_ids(self) -> tuple[str, ...]:
        return tuple(tool.tool_id for tool in self.tools)

    def about_task(self, task_id: str, status: TaskState) -> "Reply":
        """The reply with the submitted task."""
        tracking = _TRACKING[self.language].format(task_id=task_id)
        return self.model_copy(update={"task_id": task_id, "status": status, "tracking": tracking})

    def answer(self) -> AgentAnswer:
        """The part that the agent gets."""
        return AgentAnswer.model_validate({name: getattr(self, name) for name in AgentAnswer.model_fields})
