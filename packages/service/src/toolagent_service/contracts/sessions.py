"""Between the workflow of a session and its steps."""

from toolagent.contracts.contract import Contract
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.sessions import OpenSession, SessionEnd, SessionView

__all__ = ["OpenStep", "SessionLife", "SessionStep"]


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
