"""Sessions of a group, from the launch to the stop."""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, JsonValue, StringConstraints

from toolagent.contracts.calls import Caller, IdempotencyKey, ToolCall, ToolError, ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.identifiers import CallId, GroupId, ToolId, UpToADay

__all__ = [
    "SESSION_ID_PATTERN",
    "AdoptedCall",
    "GroupUse",
    "LeaseSeconds",
    "OpenSession",
    "SessionAccount",
    "SessionEnd",
    "SessionId",
    "SessionRun",
    "SessionState",
    "SessionView",
]

SESSION_ID_PATTERN = r"^session-[A-Za-z0-9_-]{8,64}$"
SessionId = Annotated[str, StringConstraints(pattern=SESSION_ID_PATTERN)]
LeaseSeconds = UpToADay
"""How long a session lasts without being used or renewed."""


class SessionState(StrEnum):
    """The state of a session. Only a `ready` one takes runs. A `failed` one never ran; any launch of it is still looked for."""

    LAUNCHING = "launching"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class SessionEnd(StrEnum):
    """Why a session ends."""

    ASKED = "asked"
    CANCELLED = "cancelled"
    FAILED_STEP = "failed_step"
    LAUNCH_FAILED = "launch_failed"
    IDLE = "idle"
    TOO_LONG = "too_long"
    BUDGET = "budget"
    REFUSED = "refused"
    DONE = "done"
    LEASE_EXPIRED = "lease_expired"
    UNOWNED = "unowned"
    """The provider ran it, but no session owned it."""


class SessionRun(Contract):
    """One call in a session. `tool_id` may be omitted if only one step runs. The same key again is the same call."""

    tool_id: ToolId | None = None
    params: dict[str, JsonValue] = {}
    key: IdempotencyKey | None = None
    timeout_s: UpToADay | None = None


class AdoptedCall(Contract):
    """A call from outside that the session makes instead. The workflow `workflow_id` waits for it."""

    call: ToolCall
    call_id: CallId
    workflow_id: Annotated[str, Field(min_length=1, max_length=1000)]
    run_id: Annotated[str, Field(max_length=100)]


class OpenSession(Contract):
    """The input of `ToolGroup`. With `runs` it makes these calls in order, and then stops.

    With `lease_s` it stops if it is neither used nor renewed for so long. `adopts` is the launch if that is
    a call from outside, which then has the params.
    """

    session_id: SessionId
    group: ToolGroup
    params: dict[str, JsonValue] = {}
    caller: Caller = Caller()
    runs: Annotated[tuple[SessionRun, ...], Field(max_length=8)] | None = None
    lease_s: LeaseSeconds | None = None
    adopts: AdoptedCall | None = None


class GroupUse(Contract):
    """The input of `UseGroup`: a session is launched with `params`, makes these calls in order, and is stopped."""

    group_id: GroupId
    params: dict[str, JsonValue] = {}
    runs: Annotated[tuple[SessionRun, ...], Field(max_length=8)] = ()
    caller: Caller = Caller()


class SessionView(Contract):
    """The current state of a session. `stop_attempts` counts stops that the provider has not confirmed."""

    session_id: SessionId
    group_id: GroupId
    state: SessionState
    caller: Caller = Caller()
    launched: JsonValue = None
    """The result of the launch."""
    host: str | None = None
    """The host on which it was launched. Tools that live on a host are used there."""
    versions: dict[ToolId, str] = {}
    """The active versions of its tools at the launch. Its calls use these while they can be called."""
    launch_call_id: CallId | None = None
    """The call that launched it. Set before the provider is asked."""
    error: ToolError | None = None
    end: SessionEnd | None = None
    opened_at: AwareDatetime
    launched_at: AwareDatetime | None = None
    """When the launch was requested. Costs count from then."""
    used_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    runs: int = 0
    stop_attempts: int = 0
    cost_usd: float = 0.0
    ends_at: AwareDatetime | None = None
    """When it stops if it is not used until then."""
    lease_ends_at: AwareDatetime | None = None
    """The end of its lease, unless it is used or renewed before."""


class SessionAccount(Contract):
    """The result of `ToolGroup`: how the session ended, and the results of its `runs`."""

    session: SessionView
    results: tuple[ToolResult, ...] = ()
