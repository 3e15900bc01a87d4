"""Requests for a repair that are refused at once: a task would only end with the same words, or pay for the same work again."""

from api.errors import Refusal
from api.ports import Dependencies
from api.problems import ProblemKind
from api.views.found_tools import found_tool
from toolagent.contracts.task_specs import RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent_service.making.mendable import unmendable

__all__ = ["require_only_repair", "require_repairable"]


async def require_repairable(dependencies: Dependencies, tool_id: str) -> None:
    """Raises Refusal for a tool that is not there, or whose files are not."""
    why_not = unmendable(await found_tool(dependencies, tool_id, dependencies.registry.entry))
    if why_not:
        raise Refusal(ProblemKind.NOT_REPAIRABLE, why_not)


async def require_only_repair(dependencies: Dependencies, spec: RepairTool) -> None:
    """Raises Refusal while another task repairs the tool. Of two asked for at the same moment both begin; one takes over in the end."""
    for status in (TaskState.RUNNING, TaskState.PENDING):
        for task in await dependencies.tasks.page(status=status, spec_type=spec.type, tool_id=spec.tool_id, limit=1, before=None):
            message = f"{spec.tool_id!r} is being repaired already, by {task.task_id}."
            remedy = f"GET /tasks/{task.task_id} says how far it is, POST /tasks/{task.task_id}/messages tells it what you know."
            raise Refusal(ProblemKind.REPAIR_RUNNING, f"{message} {remedy}", details={"task_id": task.task_id})
