"""Inputs and outputs of the steps of one call: admit, place, call, settle."""

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
    """The queue of a call, and the host that the queue belongs to, if any."""

    queue: str
    host: str | None = None


class Finished(Contract):
    """The outcome of a call: output or error. `execution_time` is in seconds."""

    kind: Literal["finished"] = "finished"
    output: JsonValue = None
    is_reference: bool = False
    """`output` is a ResultReference to a validated output."""
    error: ToolError | None = None
    validation_errors: tuple[ValidationIssue, ...] = ()
    execution_time: float = 0.0
    started_at: datetime | None = None
    active_source: int | None = None
    host: str | None = None
    left_behind: Blank = None
    """Leftovers of the tool that could not be removed; empty: none."""
    shown: JsonValue = None
    """The tool's original form of its answer, for a caller that listens."""
    settled: ToolResult | None = None
    """The final result, if the attempt recorded it; without its output if that is in `output`."""


class OfSession(Contract):
    """The session of a call. The call's result names it."""

    group_id: GroupId
    session_id: SessionId


class CallPlan(Contract):
    """The plan for a call, decided before it is made. Times are in seconds."""

    call_id: str
    tool_id: ToolId
    version: str
    params: dict[str, JsonValue]
    fingerprint: str
    placement: Placement
    fast: bool
    """Whether the call is made in a local activity."""
    way: Way = Way.WORKFLOW
    """Whether it shares a lane or has a workflow of its own."""
    repeatable: bool
    timeout_s: float
    start_timeout_s: float
    """Limit for building and starting the tool, on top of `timeout_s`."""
    queue_timeout_s: float
    """Limit for waiting for a slot."""
    priority: int = 3
    caller: Caller = Caller()
    session: OfSession | None = None
    instead_of: Blank = None
    """The version under repair that this version replaces for now."""
    repair: Blank = None
    """The task of that repair."""
    listens: Listener | None = None


class AdmitRequest(Contract):
    call: ToolCall
    call_id: str
    workflow_id: str
    run_id: str
    is_new: bool = False
    """The id was made for this call, so the call cannot have begun elsewhere."""
    prefer: str | None = None
    """The host with the resources of the call. The call is made there if the host is alive and runs such tools."""
    prefer_version: str | None = None
    """The version with the resources of the call. It is used while it can be called, unless the call names a version."""
    session: OfSession | None = None
    alone: bool = False
    """The call is made outside of a session. If its tool has a role in a group, the answer says which."""
    stops: SessionId | None = None
    """The session that admission said a stop without bindings is of. It is of no other one, also after that session has ended."""
    instead: Finished | None = None
    """Do not make the call. Unless it has an answer already, this is its answer."""
    is_stop: bool = False
    """A stop by the session itself. Repairs and quarantines do not block it."""
    is_cancelled: bool = False
    """The call is already cancelled, so it does not begin at admission."""


class Admitted(Contract):
    """The call may be made by this plan."""

    kind: Literal["admitted"] = "admitted"
    plan: CallPlan
    is_begun: bool = False
    """Its host is already making the call. The attempt there finds it by its id and waits for its end."""


class Answered(Contract):
    """The call is not made. This is its answer."""

    kind: Literal["answered"] = "answered"
    result: ToolResult


class Held(Contract):
    """A front door makes the call, until it ends or is passed on."""

    kind: Literal["held"] = "held"
    door: str


class Grouped(Contract):
    """The call has a role in a session: in a new one that it launches, or in the open one whose resources it names."""

    kind: Literal["grouped"] = "grouped"
    role: GroupRole
    group: ToolGroup
    session_id: SessionId
    host: str | None = None
    """The host of the session."""
    version: str | None = None
    """The version of the tool in the session."""
    lasts_s: float = 0.0
    """Limit for the whole call, with all waiting."""


Admission = Annotated[Admitted | Answered | Held | Grouped, Field(discriminator="kind")]


class JoinRequest(Contract):
    """Wait until a front door no longer makes the call. `is_cancelled`: end it."""

    call_id: str
    tool_id: str
    is_cancelled: bool = False


class PlaceRequest(Contract):
    """A queue was not served in time. Asks for another queue.

    The resources of the call are on the host `prefer`. While that is alive, the call waits there.
    """

    plan: CallPlan
    prefer: str | None = None


class CallRequest(Contract):
    """An attempt at a call. With the ids of the workflow in the call's record, the attempt may settle the call itself."""

    plan: CallPlan
    workflow_id: str | None = None
    run_id: str = ""
    lost: int = 0
    """How many attempts were lost with their hosts before."""
    told: tuple[JsonValue, ...] = ()
    """The last heartbeat of the last lost attempt."""
    is_cancelled: bool = False
    """The call had begun and must end."""


class SettleRequest(Contract):
    plan: CallPlan
    outcome: Finished
    workflow_id: str
    run_id: str
