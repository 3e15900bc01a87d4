"""Conversations over Temporal: say something, and close one."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client import names
from toolagent.client.failures import ChatRefusedError, ChatUnreachableError
from toolagent.client.patience import described, if_known, reached, starting
from toolagent.client.updates import attended
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.chats import ChatMessage, ChatReply
from toolagent.core.chats import CHAT_CLOSED

__all__ = ["Chats"]

_RPC_TIMEOUT = timedelta(seconds=10)
_ASKED, _DRAINS_S = 60, 0.1
"""How often a chat is asked while its workflow continues as a new run, and the pause between, in seconds."""

_CLOSING_S = 10.0
_CUT_OFF = frozenset({names.CHAT_DRAINS, "AcceptedUpdateCompletedWorkflow"})
"""Error types of a message that the next run has to answer."""


_REFUSED = {
    RPCStatusCode.INVALID_ARGUMENT: ErrorType.VALIDATION_ERROR,
    RPCStatusCode.FAILED_PRECONDITION: ErrorType.EXECUTION_ERROR,
}


class Chats:
    """The methods of `ToolAgentClient` for conversations. Both raise ChatUnreachableError."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def say(self, message: ChatMessage) -> ChatReply:
        """Wait for the answer, however long a worker takes. A chat answers in order; the same message again gets the same answer.

        Raises ChatRefusedError.
        """
        # With the id of the message alone, Temporal itself would answer a repetition, also for a deleted chat. The archive knows better.
        update_id = f"{message.message_id}:{uuid4().hex[:8]}"
        for _ in range(_ASKED):
            start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
                names.SERVICE_AGENT,
                {"chat_id": message.chat_id},
                id=names.chat_workflow(message.chat_id),
                task_queue=names.CHATS_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            try:
                with _taken(), reached(ChatUnreachableError), starting(start):
                    asked = self._client.execute_update_with_start_workflow(
                        names.SAY, message, start_workflow_operation=start, id=update_id, result_type=ChatReply
                    )
                    return await attended(asked, self._handle(message.chat_id), names.PROGRESS, ChatUnreachableError)
            except WorkflowUpdateFailedError as error:
                if not _is_cut_off(error):
                    raise _refused(error) from error
                if await self._is_terminated(start):
                    # To send it again would open the chat anew.
                    told = f"I could not answer this: {CHAT_CLOSED}"
                    return ChatReply(response=told, chat_id=message.chat_id, message_id=message.message_id, error=CHAT_CLOSED)
            except RPCError as error:
                # The workflow ended at that moment.
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
            await asyncio.sleep(_DRAINS_S)
        raise ChatUnreachableError("The chat has not gone on in a new run.")

    async def close(self, chat_id: str) -> None:
        """End the workflow of the chat, without waiting long for a pending answer."""
        handle = self._handle(chat_id)
        with reached(ChatUnreachableError), if_known():
            await handle.cancel(rpc_timeout=_RPC_TIMEOUT)
            try:
                await asyncio.wait_for(handle.result(), _CLOSING_S)
            except WorkflowFailureError:
                return
            except TimeoutError:
                await handle.terminate("The chat was deleted.", rpc_timeout=_RPC_TIMEOUT)

    async def _is_terminated(self, start: WithStartWorkflowOperation[Any, Any]) -> bool:
        """Whether the run that took the message was terminated: its chat was deleted, or an operator ended it.

        A run that was reset continues as a new run, which gives the answer.
        """
        taken = await start.workflow_handle()
        with reached(ChatUnreachableError):
            run = await described(self._client.get_workflow_handle(taken.id, run_id=taken.result_run_id))
        if run is None or run.raw_description.workflow_extended_info.reset_run_id:
            return False
        return run.status is WorkflowExecutionStatus.TERMINATED

    def _handle(self, chat_id: str) -> WorkflowHandle[object, object]:
        return self._client.get_workflow_handle(names.chat_workflow(chat_id))


@contextmanager
def _taken() -> Generator[None]:
    """Raises ChatRefusedError for a message that the server does not accept."""
    try:
        yield
    except RPCError as error:
        if error.status not in _REFUSED:
            raise
        raise ChatRefusedError(_REFUSED[error.status].value, f"Temporal refuses it: {error.message}") from error


def _is_cut_off(error: WorkflowUpdateFailedError) -> bool:
    return isinstance(error.cause, ApplicationError) and error.cause.type in _CUT_OFF


def _refused(error: WorkflowUpdateFailedError) -> ChatRefusedError:
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return ChatRefusedError(ErrorType.EXECUTION_ERROR.value, str(cause or error))
    return ChatRefusedError(cause.type or ErrorType.EXECUTION_ERROR.value, cause.message)
