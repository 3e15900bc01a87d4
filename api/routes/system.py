"""The service at a glance."""

import asyncio

from fastapi import APIRouter

from api.documentation import problem_responses
from api.ports import Dependencies, Injected
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.system import CodingAgentStatus, RecentTask, SystemStatus, ToolCounts

router = APIRouter(tags=["service"])

_RECENT = 10
_MOST = 1_000
"""Tasks of one state that are counted."""


@router.get("/system/status", summary="Tools, tasks and conversations at a glance", responses=problem_responses(ErrorType.UNAVAILABLE))
async def get_system_status(dependencies: Injected) -> SystemStatus:
    """The service at a glance. `/health` says whether it is ready, `/tasks` lists all tasks."""
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
