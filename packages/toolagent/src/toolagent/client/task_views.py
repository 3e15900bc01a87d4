"""Views of workflows on Temporal as tasks."""

from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.converter import DataConverter

from toolagent.client import names
from toolagent.contracts.callbacks import CallbackState, CallbackView
from toolagent.contracts.tasks import TaskState, TaskView

__all__ = ["delivery_of", "view_of"]

_STATES = {
    WorkflowExecutionStatus.RUNNING: TaskState.RUNNING,
    WorkflowExecutionStatus.CONTINUED_AS_NEW: TaskState.RUNNING,
    WorkflowExecutionStatus.COMPLETED: TaskState.COMPLETED,
    WorkflowExecutionStatus.CANCELED: TaskState.CANCELLED,
}


async def view_of(description: WorkflowExecutionDescription, converter: DataConverter) -> TaskView:
    """The task without its result. Progress comes from the last heartbeat of the running activity."""
    status = _STATES.get(description.status, TaskState.FAILED) if description.status else TaskState.PENDING
    progress: str | None = None
    for activity in description.raw_description.pending_activities:
        # A terminated workflow keeps its pending activities.
        if status is TaskState.RUNNING and _is_untried(activity):
            status = TaskState.PENDING
        progress = await _text(activity.heartbeat_details.payloads, converter) or progress
    origin = await description.memo_value(names.CALLBACK, "", type_hint=str)
    return TaskView(
        task_id=description.id,
        status=status,
        tool_id=description.typed_search_attributes.get(names.TOOL_ID),
        progress=progress,
        started_at=description.start_time,
        ended_at=description.close_time,
        callback=CallbackView(state=CallbackState.PENDING, origin=origin) if origin else None,
    )


def delivery_of(description: WorkflowExecutionDescription, event_id: str) -> CallbackView:
    """The state of a delivery that is not recorded yet."""
    view = CallbackView(state=CallbackState.PENDING, event_id=event_id)
    for activity in description.raw_description.pending_activities:
        view = view.model_copy(update={"attempts": activity.attempt, "reason": activity.last_failure.message})
    return view


def _is_untried(activity: PendingActivityInfo) -> bool:
    """Whether no attempt has begun. An attempt without a free slot of the tool does not count."""
    waited = activity.last_failure.application_failure_info.type == names.NO_SLOT
    return activity.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED and (activity.attempt <= 1 or waited)


async def _text(payloads: Sequence[Payload], converter: DataConverter) -> str | None:
    values = await converter.decode(payloads) if payloads else []
    return values[0] if values and isinstance(values[0], str) and values[0] else None
