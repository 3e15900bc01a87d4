"""Steps of the workflow of a session."""

from pydantic import AwareDatetime, NonNegativeInt

from toolagent.contracts.contract import Contract
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.identifiers import CallId
from toolagent.contracts.sessions import AdoptedCall, OpenSession, SessionEnd, SessionView


class OpenStep(Contract):
    request: OpenSession
    view: SessionView


class SessionStep(Contract):
    """`alert` is a message for the operator."""

    group: ToolGroup
    view: SessionView
    alert: str = ""


class SessionLife(Contract):
    """The input of `ToolGroup`: a session that begins, or continues with `view`. With `end`, it ends at once for that reason."""

    request: OpenSession
    view: SessionView | None = None
    end: SessionEnd | None = None
    uses: dict[CallId, AwareDatetime] = {}
    """Calls from outside that use it, with the latest time of their end."""
    stops: tuple[AdoptedCall, ...] = ()
    """Calls from outside that are its stop."""
    looks: NonNegativeInt = 0
    """How often the provider was probed for the launch."""
    unseen: NonNegativeInt = 0
    """How often the probe found none."""
    made: NonNegativeInt = 0
    """How many of its `runs` have results. The results are in their records, because they may exceed the input of a workflow."""


class SessionUse(Contract):
    """A call from outside uses the session, until `until` at most; None: it has ended."""

    call_id: CallId
    until: AwareDatetime | None = None
