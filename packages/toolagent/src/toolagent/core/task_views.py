"""A task that makes or repairs a tool, as it is shown."""

from toolagent.contracts.making import MakeTask
from toolagent.contracts.making_views import ListedTask, MakingTask
from toolagent.contracts.tasks import TaskState

__all__ = ["listed", "shown"]


def listed(task: MakeTask) -> ListedTask:
    """One line of the list."""
    return ListedTask.model_validate({**dict(task), "type": task.spec.type})


def shown(task: MakeTask, log: tuple[str, ...]) -> MakingTask:
    """All of it, with the end of its log."""
    return MakingTask.model_validate({**dict(task), "type": task.spec.type, "task_spec": task.spec, "result": _result(task), "log": log})


def _result(task: MakeTask) -> str | None:
    match task.status:
        case TaskState.PENDING | TaskState.RUNNING:
            return None
        case TaskState.COMPLETED:
            return task.reason or f"Registered: {', '.join(task.tool_ids) or task.tool_id}."
        case TaskState.FAILED:
            return task.reason or "It failed and does not say why."
        case TaskState.CANCELLED:
            return task.reason or "It was cancelled."
