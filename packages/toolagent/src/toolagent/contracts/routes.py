"""The running state of a tool."""

from datetime import datetime
from enum import StrEnum

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.sources import ToolSource

__all__ = ["ControlAction", "RunState", "ToolControl", "ToolRoute"]


class RunState(StrEnum):
    """The running state of a tool."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    ERROR = "error"


class ToolRoute(Contract):
    """The running state of a tool, and its address. Callers use `endpoint`; the `port` of a sandboxed tool is inside its sandbox."""

    tool_id: ToolId
    sources: tuple[ToolSource, ...] = ()
    active_source: int = 0
    state: RunState = RunState.STOPPED
    host: str | None = None
    endpoint: str | None = None
    pid: int | None = None
    port: int | None = None
    started_at: datetime | None = None
    last_error: str | None = None


class ControlAction(StrEnum):
    START = "start"
    STOP = "stop"
    DESTROY = "destroy"


class ToolControl(Contract):
    """A request to start, stop or destroy a tool on one host."""

    tool_id: ToolId
    action: ControlAction
    host: str
