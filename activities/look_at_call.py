"""Seeing how far a call is that somebody outside the batch has begun under the same idempotency key."""

from temporalio import activity

from toolagent.client import names
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import CallLook, LookRequest

__all__ = ["LookAtCall"]


class LookAtCall:
    """A workflow can await only its own children; this asks Temporal after the others."""

    def __init__(self, client: ToolAgentClient) -> None:
        self._client = client

    @activity.defn(name=names.LOOK_AT_CALL)
    async def look_at_call(self, request: LookRequest) -> CallLook:
        """Raises AnswerPendingError when Temporal does not answer; it is asked again."""
        return await self._client.look(request.call, request.call_id)
