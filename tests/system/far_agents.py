"""Workflows of agents: on another namespace, and on that of the service."""

import asyncio

import nexusrpc
from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import NexusOperationError

from toolagent.client.child import make_tool
from toolagent.client.nexus import NexusCalls, ToolAgentService
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.making import MakeEnd
from toolagent.contracts.task_specs import BuildTool

__all__ = ["FarAsks", "FarCalls", "NearMakes"]


@workflow.defn
class FarCalls:
    """Makes calls concurrently."""

    @workflow.run
    async def run(self, calls: list[ToolCall]) -> list[ToolResult]:
        nexus = NexusCalls()
        return [*await asyncio.gather(*map(nexus.run, calls))]


@workflow.defn
class FarAsks:
    """Calls one Nexus operation by its name. Returns the answer, or the kind of its refusal."""

    @workflow.run
    async def run(self, operation: str, given: JsonValue) -> JsonValue:
        nexus = workflow.create_nexus_client(service=ToolAgentService, endpoint="tool-agent")
        try:
            return await nexus.execute_operation(operation, given, output_type=dict[str, JsonValue])
        except NexusOperationError as error:
            cause = error.cause
            return (
                {"refused": cause.type.name, "message": str(cause)} if isinstance(cause, nexusrpc.HandlerError) else {"failed": str(cause)}
            )


@workflow.defn
class NearMakes:
    """Has a tool made by a child workflow."""

    @workflow.run
    async def run(self, spec: BuildTool) -> MakeEnd:
        return await make_tool(spec, "Count words.")
