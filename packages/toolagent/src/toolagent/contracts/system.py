"""The status of the whole service: `get_system_status`."""

from datetime import datetime
from enum import StrEnum

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import GroupId, ToolId
from toolagent.contracts.records import Event
from toolagent.contracts.routes import RunState
from toolagent.contracts.sessions import SessionId
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState

__all__ = [
    "CodingAgentStatus",
    "GroupCounts",
    "HostCounts",
    "ImState",
    "ImStatus",
    "RecentTask",
    "ServiceAgentStatus",
    "SessionCounts",
    "SystemStatus",
    "ToolCounts",
    "UnconfirmedStop",
    "UnderRepair",
    "WarmTool",
    "Window",
]


class ToolCounts(Contract):
    """Numbers of tools. `active`: those that can be called."""

    total: int
    active: int


class RecentTask(Contract):
    task_id: str
    status: TaskState
    task_spec: TaskSpec


class CodingAgentStatus(Contract):
    """Tasks that make or repair tools."""

    running_count: int
    running_task_ids: tuple[str, ...]
    queued_count: int
    recent_tasks: tuple[RecentTask, ...]
    """The newest first."""


class Window(Contract):
    """A conversation."""

    chat_id: str
    sdk_session_id: str | None = None
    """The id of its workflow on Temporal."""
    has_im_window: bool = False


class ImState(StrEnum):
    OFF = "off"
    """No IM server is configured."""
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    """The connection is retried."""


class ImStatus(Contract):
    """The connection of this process to the IM server."""

    state: ImState = ImState.OFF
    contact_id: str | None = None
    connected_since: datetime | None = None
    waiting: int = 0
    """Unanswered messages."""


class ServiceAgentStatus(Contract):
    """Conversations with a running workflow. `windows` are the hundred last used."""

    total_windows: int = 0
    im_connected: bool = False
    im: ImStatus = ImStatus()
    windows: tuple[Window, ...] = ()


class GroupCounts(Contract):
    """Numbers of groups. `with_lifecycle`: those that are used in sessions."""

    total: int = 0
    with_lifecycle: int = 0


class UnconfirmedStop(Contract):
    """A session whose provider has not confirmed the stop, which is retried."""

    session_id: SessionId
    group_id: GroupId
    attempts: int
    """Failed stops."""


class SessionCounts(Contract):
    """Open sessions by state."""

    living: dict[str, int] = {}
    stop_unconfirmed: tuple[UnconfirmedStop, ...] = ()
    """The oldest hundred."""


class HostCounts(Contract):
    """Numbers of hosts. A draining host counts as alive too."""

    alive: int = 0
    dead: int = 0
    draining: int = 0


class WarmTool(Contract):
    """A tool that is up or starting on a host."""

    tool_id: ToolId
    state: RunState
    host: str | None = None
    since: datetime | None = None


class UnderRepair(Contract):
    """A tool, and the running or waiting task that repairs it."""

    tool_id: str
    task_id: str
    status: TaskState


class SystemStatus(Contract):
    """The whole service at a glance."""

    tools: ToolCounts
    coding_agent: CodingAgentStatus
    service_agent: ServiceAgentStatus = ServiceAgentStatus()
    groups: GroupCounts = GroupCounts()
    sessions: SessionCounts = SessionCounts()
    hosts: HostCounts = HostCounts()
    warm: tuple[WarmTool, ...] = ()
    under_repair: tuple[UnderRepair, ...] = ()
    alerts: tuple[Event, ...] = ()
    """Alerts of tools, sessions and providers within a day: the newest twenty, the newest first."""
