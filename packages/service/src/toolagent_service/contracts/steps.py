"""What the steps of one call (admit, place, call, settle) hand to each other through the workflow."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolagent.contracts.call_messages import Listener
from toolagent.contracts.calls import Caller, ToolCall, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.contract import Contract
from toolagent.contracts.groups import GroupRole, ToolGroup
from toolagent.contracts.identifiers import GroupId, ToolId
from toolagent.contracts.sessions import SessionId
from toolagent_service.contracts.blanks import Blank
from toolagent_service.contracts.lanes import Way


class Placement(Contract):
    """Which queue a call waits in, and the host that queue belongs to, if to one."""

    queue: str
    host: str | None = None


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
    shown: JsonValue = None
    """How the tool itself wrote its answer, for a caller that listens."""
    settled: ToolResult | None = None
    """The result that stands, where the attempt recorded it; without its output where that is `output`."""


class OfSession(Contract):
    """The session that a call belongs to. The call's result names it."""

    group_id: GroupId
    session_id: SessionId


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
    session: OfSession | None = None
    instead_of: Blank = None
    """The version under repair that this one stands in for."""
    repair: Blank = None
    """The task of that repair."""
    listens: Listener | None = None


class AdmitRequest(Contract):
    call: ToolCall
    call_id: str
    workflow_id: str
    run_id: str
    is_new: bool = False
    """The id was made for this call: nobody else can have begun it."""
    prefer: str | None = None
    """The host that has what the call works with: it is made there if that host is alive and runs such tools."""
    prefer_version: str | None = None
    """The version that has what the call works with: it is called while it can be, unless the call names one."""
    session: OfSession | None = None
    alone: bool = False
    """No session makes it: where its tool has a role in a group, the answer says which."""
    instead: Finished | None = None
    """It is not to be made: unless it has an answer, this becomes its answer."""
    is_stop: bool = False
    """A session makes this stop by itself. Repairs and quarantines do not hold it back."""
    is_cancelled: bool = False
    """It is known to be cancelled: it does not begin where it is admitted."""


class Admitted(Contract):
    """The call may be made, like this."""

    kind: Literal["admitted"] = "admitted"
    plan: CallPlan
    is_begun: bool = False
    """It is being made by the host that it is placed on, which knows it by its id: the attempt there waits for its end."""


class Answered(Contract):
    """The call need not or must not be made: this is the answer."""

    kind: Literal["answered"] = "answered"
    result: ToolResult


class Held(Contract):
    """A front door makes the call: there it ends, or is given away."""

    kind: Literal["held"] = "held"
    door: str


class Grouped(Contract):
    """The call has a role in a session: that which it launches, or that which lives and has what the call names."""

    kind: Literal["grouped"] = "grouped"
    role: GroupRole
    group: ToolGroup
    session_id: SessionId
    host: str | None = None
    """Where the session lives."""
    version: str | None = None
    """The one that the session was launched with."""
    lasts_s: float = 0.0
    """What the call may take, with all its waiting."""


Admission = Annotated[Admitted | Answered | Held | Grouped, Field(discriminator="kind")]


class JoinRequest(Contract):
    """Wait until a front door makes the call no longer. `is_cancelled`: it is to end."""

    call_id: str
    tool_id: str
    is_cancelled: bool = False


class PlaceRequest(Contract):
    """A queue was not served in time: where to wait instead?

    What the call works with is on the host `prefer`: while that is alive, it waits there.
    """

    plan: CallPlan
    prefer: str | None = None


class CallRequest(Contract):
    """With the ids of the workflow that the call's record names, the attempt may settle the call."""

    plan: CallPlan
    workflow_id: str | None = None
    run_id: str = ""
    lost: int = 0
    """How many attempts were lost with their hosts, before it was placed here."""
    told: tuple[JsonValue, ...] = ()
    """What the last of them said in its last heartbeat."""
    is_cancelled: bool = False
    """It was begun and is to end."""


class SettleRequest(Contract):
    plan: CallPlan
    outcome: Finished
    workflow_id: str
    run_id: str
