"""Tools that are used together: which, in what order, and what holds for a session of them."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, NonNegativeFloat, PositiveFloat, StringConstraints

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import AtLeastOne, GroupId, ShortText, ToolId

__all__ = ["GroupLimits", "GroupRole", "GroupStep", "ResultPath", "ToolGroup", "VerifyProbe"]

ResultPath = Annotated[str, StringConstraints(pattern=r"^\$(\.[A-Za-z_][A-Za-z0-9_-]*)*$", max_length=200)]
"""A field of a result: `$.server_id`."""


class GroupRole(StrEnum):
    """What a tool of a group with a lifecycle does: begins what costs, works in it, ends it."""

    LAUNCH = "launch"
    RUN = "run"
    STOP = "stop"


class GroupStep(Contract):
    """A tool of the group in its role."""

    tool_id: ToolId
    role: GroupRole
    params: dict[str, JsonValue] = {}
    """Params that every call of it gets, unless the caller says otherwise."""
    bindings: dict[str, ResultPath] = {}
    """Params that come out of the launch's result: `{"server_id": "$.server_id"}`."""
    usage: str = ""


class VerifyProbe(Contract):
    """A tool that says what the provider runs: so a launch whose answer was lost is found.

    It lists all (`items`, `launched_by`), or is asked for one (`asks`, with the launch's own params).
    """

    tool_id: ToolId
    params: dict[str, JsonValue] = {}
    items: ResultPath = "$"
    """Where the list is in its result. An item is what the launch would have answered."""
    launched_by: ResultPath = "$.launched_by"
    """In an item, the id of the call that launched it."""
    asks: str | None = None
    """The param that gets the id of the call. Its result is what the launch would have answered; `details.cause` `not_found`: nothing."""
    others: str | None = None
    """The param that gets what other living sessions of the group have launched, as `launch_id` names it."""
    launch_id: ResultPath = "$"
    since: str | None = None
    """The param that gets when the session began (ISO 8601): what is older is not its launch."""
    lists: ToolId | None = None
    """With `asks`: a tool that lists all that the provider runs, without params. `launch_id` is of its items, too: they name no call."""


class GroupLimits(Contract):
    """When a session is stopped though nobody asked for it; seconds and US dollars. Unset: no limit."""

    idle_timeout_s: Annotated[float | None, Field(gt=0, le=30 * 86_400)] = 900.0
    total_timeout_s: Annotated[float | None, Field(gt=0, le=30 * 86_400)] = 86_400.0
    usd_per_hour: NonNegativeFloat = 0.0
    max_usd: PositiveFloat | None = None
    max_sessions: AtLeastOne | None = None
    """How many live at once."""


class ToolGroup(Contract):
    """Tools that are used together. With `lifecycle` they live in sessions: launch, run, and a stop that always comes."""

    group_id: GroupId
    name: ShortText
    description: str = ""
    category: str = "custom"
    tool_ids: tuple[ToolId, ...] = ()
    usage_order: tuple[ToolId, ...] = ()
    usage_example: str = ""
    lifecycle: bool = False
    steps: tuple[GroupStep, ...] = ()
    """Of a lifecycle: one launch, one stop, and what runs between."""
    parallel: bool = False
    """Whether runs of a session may go on at once; else one waits for the other."""
    stop_after_failure: bool = True
    """Whether a run that fails ends its session. One that was refused never does."""
    verify: VerifyProbe | None = None
    limits: GroupLimits = GroupLimits()
    triggers: tuple[str, ...] = ()
    """Words of a request that this group answers though no tool has that name."""
    workflow_example: dict[str, JsonValue] = {}

    @property
    def all_tool_ids(self) -> frozenset[str]:
        """Also those that only a step names."""
        return frozenset((*self.tool_ids, *(step.tool_id for step in self.steps)))

    @property
    def needed_tool_ids(self) -> frozenset[str]:
        """What a session needs until it has ended: also those that say what the provider runs."""
        probe = (self.verify.tool_id, self.verify.lists or self.verify.tool_id) if self.verify is not None else ()
        return self.all_tool_ids.union(probe)

    def step(self, role: GroupRole) -> GroupStep | None:
        """The first with this role."""
        return next((step for step in self.steps if step.role is role), None)
