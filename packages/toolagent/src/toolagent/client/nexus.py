"""The service as Nexus operations: for agents on another Temporal namespace, or on another server that shares endpoints.

Give your Temporal client `ToolAgentPlugin`, as for child workflows.
"""

import asyncio

import nexusrpc
from temporalio import workflow
from temporalio.exceptions import NexusOperationError

from toolagent.client import names
from toolagent.client.child import ended_outside
from toolagent.contracts.batches import BatchEnd, ToolBatch
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.http import BriefMatches
from toolagent.contracts.making import MakeEnd
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.nexus import CreateToolRequest, ToolQuery, ToolSearch
from toolagent.core.calls.results import failed

__all__ = ["NexusCalls", "ToolAgentService"]


@nexusrpc.service
class ToolAgentService:
    """Calls, batches and tasks are workflows of the service, without a time limit here. Cancelling an operation cancels its workflow.

    Errors of the tool or its caller are in the result. An operation fails with `NOT_FOUND` if there is no such tool, and with `BAD_REQUEST`
    if its input is not valid.
    """

    run_tool: nexusrpc.Operation[ToolCall, ToolResult]
    run_tools: nexusrpc.Operation[ToolBatch, BatchEnd]
    create_tool: nexusrpc.Operation[CreateToolRequest, MakeEnd]
    get_tool: nexusrpc.Operation[ToolQuery, ToolManifest]
    search_tools: nexusrpc.Operation[ToolSearch, BriefMatches]


class NexusCalls:
    """Runs calls as Nexus operations, for a `ToolSubAgent` inside a workflow."""

    def __init__(self, endpoint: str = names.NEXUS_ENDPOINT) -> None:
        self._client = workflow.create_nexus_client(service=ToolAgentService, endpoint=endpoint)

    async def run(self, call: ToolCall) -> ToolResult:
        """Make a call and wait for its result. Errors of the call are in the result, not raised.

        The same operation is the same call, however often it is delivered: its id follows from the idempotency key, or else from Nexus's
        request id. Raises asyncio.CancelledError, once the call has ended, when this workflow is cancelled.
        """
        task = asyncio.current_task()
        asked_before = task.cancelling() if task else 0
        try:
            result = await self._client.execute_operation(
                ToolAgentService.run_tool,
                call,
                # Whether the tool stopped is known only when the call has ended.
                cancellation_type=workflow.NexusOperationCancellationType.WAIT_COMPLETED,
                summary=call.tool_id,
            )
        except NexusOperationError as error:
            result = failed("", call.tool_id, _error_of(error), workflow.now())
        if task and task.cancelling() > asked_before:
            # The call ended by itself, but our own cancellation must not get lost.
            raise asyncio.CancelledError
        return result


def _error_of(error: NexusOperationError) -> ToolError:
    if isinstance(error.cause, nexusrpc.HandlerError):
        is_bad = error.cause.type is nexusrpc.HandlerErrorType.BAD_REQUEST
        return ToolError(type=ErrorType.VALIDATION_ERROR if is_bad else ErrorType.UNAVAILABLE, message=str(error.cause))
    return ended_outside(error.cause)
