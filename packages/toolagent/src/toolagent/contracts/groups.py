"""Groups of tools that are used together, and the rules of their sessions."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, NonNegativeFloat, PositiveFloat, StringConstraints

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import AtLeastOne, GroupId, ShortText, ToolId

__all__ = ["GroupLimits", "GroupRole", "GroupStep", "ResultPath", "ToolGroup", "VerifyProbe"]

ResultPath = Annotated[str, StringConstraints(pattern=r"^\$(\.[A-Za-z_][A-Za-z0-9_-]*)*$", max_length=200)]
"""A field of a result: `$.server_id`."""


class GroupRole(StrEnum):
    """The role of a tool in a group with a lifecycle: it starts the paid resource, works in it, or stops it."""

    LAUNCH = "launch"
    RUN = "run"
    STOP = "stop"


class GroupStep(Contract):
    """A tool of the group in its role."""

    tool_id: ToolId
    role: GroupRole
    params: dict[str, JsonValue] = {}
    """Params of every call, unless the caller gives others."""
    bindings: dict[str, ResultPath] = {}
    """Params that are taken from the result of the launch: `{"server_id": "$.server_id"}`."""
    usage: str = ""


class VerifyProbe(Contract):
    """A tool that says what the provider runs. It finds a launch whose answer was lost.

    It lists everything (`items`, `launched_by`), or is asked for one launch (`asks`, with the params of that launch).
    """

    tool_id: ToolId
    params: dict[str, JsonValue] = {}
    items: ResultPath = "$"
    """Path of the list in its result. An item is what the launch would have answered."""
    launched_by: ResultPath = "$.launched_by"
    """Path in an item: the id of the call that launched it."""
    asks: str | None = None
    """The param for the id of the call. The result is what the launch would have answered; `details.cause` `not_found`: nothing runs."""
    others: str | None = None
    """The param for the launches of the other open sessions of the group, as `launch_id` names them."""
    launch_id: ResultPath = "$"
    since: str | None = None
    """The param for the start of the session (ISO 8601). Anything older is not its launch."""
    lists: ToolId | None = None
    """With `asks`: a tool that lists everything the provider runs, without params. Its items name no call, but have `launch_id`."""


class GroupLimits(Contract):
    """Limits at which a session is stopped, in seconds and US dollars. Unset: no limit."""

    idle_timeout_s: Annotated[float | None, Field(gt=0, le=30 * 86_400)] = 900.0
    total_timeout_s: Annotated[float | None, Field(gt=0, le=30 * 86_400)] = 86_400.0
    usd_per_hour: NonNegativeFloat = 0.0
    max_usd: PositiveFloat | None = None
    max_sessions: AtLeastOne | None = None
    """Sessions at once."""


class ToolGroup(Contract):
    """Tools that are used together. With `lifecycle` they are used in sessions: launch, runs, and a stop that always happens."""

    group_id: GroupId
    name: ShortText
    description: str = ""
    category: str = "custom"
    tool_ids: tuple[ToolId, ...] = ()
    usage_order: tuple[ToolId, ...] = ()
    usage_example: str = ""
    lifecycle: bool = False
    steps: tuple[GroupStep, ...] = ()
    """The steps of a lifecycle: one launch, one stop, and runs between."""
    parallel: bool = False
    """Whether runs of a session may overlap. Otherwise one waits for the other."""
    stop_after_failure: bool = True
    """Whether a failed run ends its session. A refused run never does."""
    verify: VerifyProbe | None = None
    limits: GroupLimits = GroupLimits()
    triggers: tuple[str, ...] = ()
    """Words in a request that this group answers although no tool has that name."""
    workflow_example: dict[str, JsonValue] = {}

    @property
    def all_tool_ids(self) -> frozenset[str]:
        """Includes tools that only a step names."""
        return frozenset((*self.tool_ids, *(step.tool_id for step in self.steps)))

    @property
    def needed_tool_ids(self) -> frozenset[str]:
        """The tools that a session needs until it has ended, including its probes."""
        probe = (self.verify.tool_id, self.verify.lists or self.verify.tool_id) if self.verify is not None else ()
        return self.all_tool_ids.union(probe)

    def step(self, role: GroupRole) -> GroupStep | None:
        """The first step with this role."""
        return next((step for step in self.steps if step.role is role), None)
