"""How the workflows of tasks ended, according to Temporal."""

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from engine.store.tasks import Ending
from engine.upkeep.removal.tasks import UnreadableEndError
from toolagent.client.patience import is_away
from toolagent.contracts.tasks import TaskState

_UNKNOWN = "Temporal does not know it any more, so no worker has it."
_GOES_ON = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW)

_REASONS: dict[WorkflowExecutionStatus, str] = {
    WorkflowExecutionStatus.TERMINATED: "Its workflow was terminated on Temporal.",
    WorkflowExecutionStatus.TIMED_OUT: "Its workflow reached a time limit that was set on Temporal.",
    WorkflowExecutionStatus.CANCELED: "It was cancelled.",
    WorkflowExecutionStatus.COMPLETED: "Its workflow has ended, and its outcome was not recorded.",
}


class WorkflowEnds:
    """See `engine.upkeep.removal.tasks.WorkflowEnd`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, task_id: str) -> tuple[Ending, str] | None:
        handle = self._client.get_workflow_handle(task_id)
        try:
            status = (await handle.describe()).status
            if status is WorkflowExecutionStatus.FAILED:
                await handle.result()
        except WorkflowFailureError as failure:
            return TaskState.FAILED, f"Its workflow failed: {failure.cause}."
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return TaskState.FAILED, _UNKNOWN
            raise (ConnectionError if is_away(error) else UnreadableEndError)(str(error)) from error
        if status is None or status in _GOES_ON:
            return None
        is_cancelled = status is WorkflowExecutionStatus.CANCELED
        return TaskState.CANCELLED if is_cancelled else TaskState.FAILED, _REASONS.get(status, f"Its workflow ended: {status.name}.")
