"""Workflows of other projects, which call our tools as children."""

import asyncio

from temporalio import workflow

from toolagent.client.child import ChildCalls, call_tool, use_group
from toolagent.client.sub_agent import ExecutionSummary, ToolSubAgent
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.sessions import GroupUse, SessionAccount

__all__ = ["Asking", "Delegating", "Renting"]


@workflow.defn
class Asking:
    """Makes one call; a query tells whether it was asked to end."""

    def __init__(self) -> None:
        self._was_cancelled = False

    @workflow.run
    async def run(self, call: ToolCall) -> ToolResult:
        try:
            return await call_tool(call)
        except asyncio.CancelledError:
            self._was_cancelled = True
            raise

    @workflow.query
    def was_cancelled(self) -> bool:
        return self._was_cancelled


@workflow.defn
class Delegating:
    """Runs a sub-agent inside a workflow."""

    @workflow.run
    async def run(self, numbers: list[int]) -> ExecutionSummary:
        told: list[str] = []
        sub_agent = ToolSubAgent.for_workflow("sub", ChildCalls(), "wf", "node", lambda result: told.append(result.call_id))
        await sub_agent.execute_batch([("echo", {"number": number}) for number in numbers])
        return {**sub_agent.get_execution_summary(), "told": len(told)}


@workflow.defn
class Renting:
    """Uses a group that is served on this queue."""

    @workflow.run
    async def run(self, use: GroupUse, queue: str) -> SessionAccount:
        return await use_group(use, task_queue=queue)
