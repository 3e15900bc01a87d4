"""Answers to agents that describe their need in plain words."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import GroupId, ToolId
from toolagent.contracts.tasks import TaskState

__all__ = [
    "AgentAnswer",
    "CompositeWorkflow",
    "GroupOverview",
    "GroupsOverview",
    "Proposal",
    "RuntimeOverview",
    "RuntimesOverview",
    "SingleCall",
    "Solution",
    "SolutionStep",
    "SuggestedTool",
    "UsageExample",
]


class UsageExample(Contract):
    """Params of a call as a template: the tool's first example, or made-up values for its required params."""

    params: dict[str, JsonValue]


class SuggestedTool(Contract):
    """A suggested tool, with the reason."""

    tool_id: ToolId
    name: str
    reason: str
    usage_example: UsageExample


class SolutionStep(Contract):
    """One call. A param `<from_step_1>` stands for what that step `returns`."""

    step: int
    action: str
    tool: ToolId
    params: dict[str, JsonValue] = {}
    returns: str | None = None


class CompositeWorkflow(Contract):
    """Tools of a group, called in this order. With `session`, a session of the group calls them, and always stops what it launched."""

    type: Literal["composite_workflow"] = "composite_workflow"
    group_id: GroupId
    base_tools: tuple[ToolId, ...]
    steps: tuple[SolutionStep, ...]
    session: str | None = None
    """The request that opens a session; null for a group without a lifecycle."""


class SingleCall(Contract):
    """One call is enough: the body of `POST /select_tool`."""

    type: Literal["single_call"] = "single_call"
    tool_id: ToolId
    params: dict[str, JsonValue]


class Proposal(Contract):
    """A request that the agent can send itself."""

    type: Literal["proposal"] = "proposal"
    method: str
    path: str
    body: dict[str, JsonValue]


class GroupOverview(Contract):
    group_id: GroupId
    name: str
    description: str
    usage_order: tuple[ToolId, ...]


class GroupsOverview(Contract):
    type: Literal["groups"] = "groups"
    groups: tuple[GroupOverview, ...]


class RuntimeOverview(Contract):
    backend_runtime: str
    name: str
    tool_count: int


class RuntimesOverview(Contract):
    type: Literal["backend_runtimes"] = "backend_runtimes"
    backend_runtimes: tuple[RuntimeOverview, ...]


Solution = Annotated[
    CompositeWorkflow | SingleCall | Proposal | GroupsOverview | RuntimesOverview,
    Field(discriminator="type"),
]


class AgentAnswer(Contract):
    """The answer to one message. `status`, `tracking` and `estimated_time` describe the task `task_id`; null without a task."""

    reply: str
    tools: tuple[SuggestedTool, ...] = ()
    """The best first."""
    solution: Solution | None = None
    task_id: str | None = None
    status: TaskState | None = None
    tracking: str | None = None
    estimated_time: str | None = None
    next_steps: tuple[str, ...] = ()
    answered_by: Literal["rules", "model"] = "rules"
    """`rules`: recognised words, without a model."""
