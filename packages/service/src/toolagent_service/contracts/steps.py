"""What the steps of one call (admit, place, call, settle) hand to each other through the workflow."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolagent.contracts.calls import Caller, ToolCall, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId
from toolagent_service.contracts.blanks import Blank
from toolagent_service.contracts.lanes import Way

__all__ = [
    "Admission",
    "AdmitRequest",
    "Admitted",
    "Answered",
    "CallPlan",
    "CallRequest",
    "Finished",
    "Held",
    "JoinRequest",
    "PlaceRequest",
    "Placement",
    "SettleRequest",
]


class Placement(Contract):
    """Which queue a call waits in, and the host that queue belongs to, if to one."""

    queue: str
    host: str | None = None


class CallPlan(Contract):
    """Everything that was decided about a call before it was made. Times are in seconds."""

    call_id: str
    tool_id: ToolId
    version: str
    params: dict[str, JsonValue]
    fingerprint: str
    placement: Placement
    fast: bool
    """The call is made inside the workflow's own task."""
    way: Way = Way.WORKFLOW
    """Whether it shares a lane or has a workflow of its own."""
    repeatable: bool
    timeout_s: float
    start_timeout_s: float
    """What building and starting the tool may take, on top of `timeout_s`."""
    queue_timeout_s: float
    """What waiting for a slot may take."""
    priority: int = 3
    caller: Caller = Caller()
    instead_of: Blank = None
    """The version under repair that this one stands in for."""
    repair: Blank = None
    """The task of that repair."""


class AdmitRequest(Contract):
    call: ToolCall
    call_id: str
    workflow_id: str
    run_id: str
    is_new: bool = False
    """The id was made for this call: nobody else can have begun it."""
    prefer: str | None = None
    """The host that has what the call works with: it is made there if that host is alive and runs such tools."""


class Admitted(Contract):
    """The call may be made, like this."""

    kind: Literal["admitted"] = "admitted"
    plan: CallPlan


class Answered(Contract):
    """The call need not or must not be made: this is the answer."""

    kind: Literal["answered"] = "answered"
    result: ToolResult


class Held(Contract):
    """A front door makes the call: there it ends, or is given away."""

    kind: Literal["held"] = "held"
    door: str


Admission = Annotated[Admitted | Answered | Held, Field(discriminator="kind")]


class JoinRequest(Contract):
    """Wait until a front door makes the call no longer. `is_cancelled`: it is to end."""

    call_id: str
    tool_id: str
    is_cancelled: bool = False


class PlaceRequest(Contract):
    """A queue was not served in time: where to wait instead?"""

    plan: CallPlan


class CallRequest(Contract):
    plan: CallPlan


class Finished(Contract):
    """The tool answered, or it is known why it did not. `execution_time` is in seconds."""

    kind: Literal["finished"] = "finished"
    output: JsonValue = None
    is_reference: bool = False
    """`output` is a ResultReference; what it stands for has been checked."""
    error: ToolError | None = None
    validation_errors: tuple[ValidationIssue, ...] = ()
    execution_time: float = 0.0
    started_at: datetime | None = None
    active_source: int | None = None
    host: str | None = None
    left_behind: Blank = None
    """What the tool left that could not be removed; empty: nothing."""


class SettleRequest(Contract):
    plan: CallPlan
    outcome: Finished
    workflow_id: str
    run_id: str
