"""The service at a glance: its tools and its tasks."""

import asyncio

from api.ports import Dependencies
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.system import CodingAgentStatus, RecentTask, SystemStatus, ToolCounts

__all__ = ["system_status"]

_RECENT = 10
_MOST = 1_000
"""Tasks of one state that are counted."""


async def system_status(dependencies: Dependencies) -> SystemStatus:
    tools = await dependencies.registry.list_all()
    active = sum(tool.status is ToolStatus.ACTIVE for tool in tools)
    return SystemStatus(tools=ToolCounts(total=len(tools), active=active), coding_agent=await _coding_agent(dependencies))


async def _coding_agent(dependencies: Dependencies) -> CodingAgentStatus:
    running, queued = await asyncio.gather(_ids(dependencies, TaskState.RUNNING, _MOST), _ids(dependencies, TaskState.PENDING, _MOST))
    found = [await dependencies.tasks.get(task_id) for task_id in await _ids(dependencies, None, _RECENT)]
    recent = [RecentTask(task_id=task.task_id, status=task.status, task_spec=task.spec) for task in found if task is not None]
    return CodingAgentStatus(running_count=len(running), running_task_ids=running, queued_count=len(queued), recent_tasks=tuple(recent))


async def _ids(dependencies: Dependencies, status: TaskState | None, most: int) -> tuple[str, ...]:
    page = await dependencies.tasks.page(status=status, spec_type=None, tool_id=None, limit=most, before=None)
    return tuple(task.task_id for task in page)
