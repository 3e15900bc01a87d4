"""The service at a glance: its tools and its tasks."""

import asyncio

from api.ports import Doors
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.system import CodingAgentStatus, RecentTask, SystemStatus, ToolCounts

__all__ = ["system_status"]

_RECENT = 10
_MOST = 1_000
"""Tasks of one state that are counted."""


async def system_status(doors: Doors) -> SystemStatus:
    tools = await doors.registry.list_all()
    active = sum(tool.status is ToolStatus.ACTIVE for tool in tools)
    return SystemStatus(tools=ToolCounts(total=len(tools), active=active), coding_agent=await _coding_agent(doors))


async def _coding_agent(doors: Doors) -> CodingAgentStatus:
    running, queued = await asyncio.gather(_ids(doors, TaskState.RUNNING, _MOST), _ids(doors, TaskState.PENDING, _MOST))
    found = [await doors.tasks.get(task_id) for task_id in await _ids(doors, None, _RECENT)]
    recent = [RecentTask(task_id=task.task_id, status=task.status, task_spec=task.spec) for task in found if task is not None]
    return CodingAgentStatus(running_count=len(running), running_task_ids=running, queued_count=len(queued), recent_tasks=tuple(recent))


async def _ids(doors: Doors, status: TaskState | None, most: int) -> tuple[str, ...]:
    page = await doors.tasks.page(status=status, spec_type=None, tool_id=None, limit=most, before=None)
    return tuple(task.task_id for task in page)
