"""How the service is at work: `get_system_status`."""

from toolagent.contracts.contract import Contract
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState

__all__ = ["CodingAgentStatus", "RecentTask", "ServiceAgentStatus", "SystemStatus", "ToolCounts", "Window"]


class ToolCounts(Contract):
    """`active`: those that can be called."""

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
    has_im_window: bool = False


class ServiceAgentStatus(Contract):
    """Conversations; none while the service has no agent that talks."""

    total_windows: int = 0
    im_connected: bool = False
    windows: tuple[Window, ...] = ()


class SystemStatus(Contract):
    """The whole service at a glance."""

    tools: ToolCounts
    coding_agent: CodingAgentStatus
    service_agent: ServiceAgentStatus = ServiceAgentStatus()
