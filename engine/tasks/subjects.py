"""What a task is about, for the agent that works on it."""

from dataclasses import dataclass

from engine.store.tasks import TaskTable
from toolagent.contracts.task_specs import MakeRuntime, RepairTool
from toolagent.core.failures import UnknownTaskError

_REPAIR = RepairTool.model_fields["type"].default


@dataclass(frozen=True, slots=True)
class Subject:
    """The id of the tool, and whether the tool exists and is to be repaired."""

    tool_id: str
    is_repair: bool


class Subjects:
    def __init__(self, tasks: TaskTable) -> None:
        self._tasks = tasks

    async def of(self, task_id: str) -> Subject:
        """Without the specification, which may be large. Raises UnknownTaskError."""
        task = await self._tasks.listed(task_id)
        if task is None:
            raise UnknownTaskError(task_id)
        return Subject(task.tool_id, task.type == _REPAIR)

    async def runtime(self, task_id: str) -> MakeRuntime | None:
        """The runtime that the task asks for, if any."""
        task = await self._tasks.get(task_id)
        return None if task is None or isinstance(task.spec, RepairTool) else task.spec.runtime
