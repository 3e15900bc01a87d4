"""Between the workflow of a session and its steps."""

from pydantic import AwareDatetime, NonNegativeInt

from toolagent.contracts.contract import Contract
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.identifiers import CallId
from toolagent.contracts.sessions import AdoptedCall, OpenSession, SessionEnd, SessionView


class OpenStep(Contract):
    request: OpenSession
    view: SessionView


class SessionStep(Contract):
    """`alert` is what an operator has to know of."""

    group: ToolGroup
    view: SessionView
    alert: str = ""


class SessionLife(Contract):
    """What `ToolGroup` takes: a session that begins, or goes on with `view`; it ends at once where `end` says why."""

    request: OpenSession
    view: SessionView | None = None
    end: SessionEnd | None = None
    uses: dict[CallId, AwareDatetime] = {}
    """Calls of others that use it, and when each is over at the latest."""
    stops: tuple[AdoptedCall, ...] = ()
    """Calls of others that are its stop."""
    looks: NonNegativeInt = 0
    """How often the provider was asked for the launch."""
    unseen: NonNegativeInt = 0
    """How often it had none."""
    made: NonNegativeInt = 0
    """How many of its `runs` have results. Their records have them: all of them may be larger than what a workflow is started with."""


class SessionUse(Contract):
    """A call that somebody makes by itself uses the session; `until` says how long at most, None that it has ended."""

    call_id: CallId
    until: AwareDatetime | None = None
