"""Seeing how far a call is that somebody outside the batch has begun under the same idempotency key."""

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.faults import Faults
from toolagent.client.failures import AnswerPendingError
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import CallLook, LookRequest, LookState
from toolagent_service import step_names


class LookAtCall:
    """A workflow can await only its own children; this asks Temporal after the others."""

    def __init__(self, client: ToolAgentClient) -> None:
        self._client = client
        self._faults = Faults(waits_for=(AnswerPendingError,))

    @activity.defn(name=step_names.LOOK_AT_CALL)
    async def look_at_call(self, request: LookRequest) -> CallLook:
        """Raises AnswerPendingError when Temporal does not answer, ApplicationError when a call that is waited for goes on: for both,
        Temporal looks again. Whatever else it is, it is tried MOST_FAULTS times."""
        with self._faults.bounded():
            look = await self._client.look(request.call, request.call_id)
        if request.waits and look.state is LookState.RUNNING:
            message = f"The call {request.call_id} goes on."
            raise ApplicationError(message, type=step_names.STILL_RUNNING, category=ApplicationErrorCategory.BENIGN)
        return look
