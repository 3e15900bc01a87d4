"""Workflows of an agent on another namespace."""

import asyncio

import nexusrpc
from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import NexusOperationError

from toolagent.client.nexus import NexusCalls, ToolAgentService
from toolagent.contracts.calls import ToolCall, ToolResult

__all__ = ["FarAsks", "FarCalls"]


@workflow.defn
class FarCalls:
    """Makes calls side by side."""

    @workflow.run
    async def run(self, calls: list[ToolCall]) -> list[ToolResult]:
        nexus = NexusCalls()
        return [*await asyncio.gather(*map(nexus.run, calls))]


@workflow.defn
class FarAsks:
    """Has one operation done by its name; the answer, or what kind of refusal it was."""

    @workflow.run
    async def run(self, operation: str, given: JsonValue) -> JsonValue:
        nexus = workflow.create_nexus_client(service=ToolAgentService, endpoint="tool-agent")
        try:
            return await nexus.execute_operation(operation, given, output_type=dict)
        except NexusOperationError as error:
            cause = error.cause
            return (
                {"refused": cause.type.name, "message": str(cause)} if isinstance(cause, nexusrpc.HandlerError) else {"failed": str(cause)}
            )
