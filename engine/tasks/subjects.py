"""The subject of a task: a tool that it makes or repairs."""

from dataclasses import dataclass

from engine.store.tasks import TaskTable
from toolagent.contracts.making_views import ListedTask
from toolagent.contracts.task_specs import MakeRuntime, RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import UnknownTaskError

_REPAIR = RepairTool.model_fields["type"].default


@dataclass(frozen=True, slots=True)
class Subject:
    """`is_repair`: the tool exists and is repaired."""

    tool_id: str
    is_repair: bool


class Subjects:
    def __init__(self, tasks: TaskTable) -> None:
        self._tasks = tasks

    async def of(self, task_id: str) -> Subject:
        """Reads no specification, which may be large. Raises UnknownTaskError."""
        task = await self._tasks.listed(task_id)
        if task is None:
            raise UnknownTaskError(task_id)
        return Subject(task.tool_id, task.type == _REPAIR)

    async def runtime(self, task_id: str) -> MakeRuntime | None:
        """The runtime that the task asks for, if any."""
        task = await self._tasks.get(task_id)
        return None if task is None or isinstance(task.spec, RepairTool) else task.spec.runtime


async def repair_under_way(tasks: TaskTable, tool_id: str) -> ListedTask | None:
    """A task that repairs the tool now."""
    for status in (TaskState.RUNNING, TaskState.PENDING):
        for task in await tasks.page(status=status, spec_type=_REPAIR, tool_id=tool_id, limit=1):
            return task
    return None
