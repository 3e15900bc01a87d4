"""Looks at a call that was begun outside the batch, under the same idempotency key."""

from temporalio import activity

from activities.failures import expected
from activities.faults import Faults
from toolagent.client.failures import AnswerPendingError
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import CallLook, LookRequest, LookState
from toolagent_service import step_names


class LookAtCall:
    """Asks Temporal about calls that are not children of the workflow, and that the workflow therefore cannot await."""

    def __init__(self, client: ToolAgentClient) -> None:
        self._client = client
        self._faults = Faults(waits_for=(AnswerPendingError,))

    @activity.defn(name=step_names.LOOK_AT_CALL)
    async def look_at_call(self, request: LookRequest) -> CallLook:
        """Raises AnswerPendingError if Temporal does not answer, ApplicationError if a call that the batch waits for still runs.

        Temporal retries both without end, and everything else MOST_FAULTS times.
        """
        with self._faults.bounded():
            look = await self._client.look(request.call, request.call_id)
        if request.waits and look.state is LookState.RUNNING:
            raise expected(f"The call {request.call_id} goes on.", step_names.STILL_RUNNING)
        return look
