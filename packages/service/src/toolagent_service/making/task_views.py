"""A task that makes or repairs a tool: its first record, and its view."""

from datetime import datetime

from toolagent.contracts.making import MakeRequest, MakeTask
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.tasks import TaskState
from toolagent.core.task_requests import described, subject_of


def begun(request: MakeRequest, at: datetime) -> MakeTask:
    """The record of a new task."""
    return MakeTask(
        task_id=request.task_id,
        status=TaskState.PENDING,
        spec=request.spec,
        description=described(request),
        tool_id=subject_of(request.spec),
        created_at=at,
        caller=request.caller,
        key=request.key,
    )


def shown(task: MakeTask, log: tuple[str, ...]) -> MakingTask:
    """The view of a task, with the end of its log."""
    told = {"type": task.spec.type, "task_spec": task.spec, "result": _result(task), "built": _is_built(task), "log": log}
    return MakingTask.model_validate({**dict(task), **told})


def _is_built(task: MakeTask) -> bool:
    """Whether the task made its tools. A completed task has evidence of that; one that was cut off may have made tools before."""
    return bool(task.tool_ids) and (task.evidence is not None or task.status is not TaskState.COMPLETED)


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
