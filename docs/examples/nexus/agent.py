"""An agent on a namespace of its own, which has tools found and called through Nexus."""

from temporalio import workflow

from toolagent import ToolCall, ToolSubAgent
from toolagent.client.nexus import NexusCalls, ToolAgentService
from toolagent.contracts.nexus import ToolSearch

__all__ = ["FarAgent"]

ENDPOINT = "tool-agent"


@workflow.defn
class FarAgent:
    """Looks for a tool, calls it, and calls one that is not there."""

    @workflow.run
    async def run(self, expression: str) -> dict[str, object]:
        nexus = workflow.create_nexus_client(service=ToolAgentService, endpoint=ENDPOINT)
        found = await nexus.execute_operation(ToolAgentService.search_tools, ToolSearch(keyword="calculator", limit=1))
        tool_id = found.tools[0].tool_id
        # One operation; a `ToolSubAgent` keeps account of several.
        result = await nexus.execute_operation(ToolAgentService.run_tool, ToolCall(tool_id=tool_id, params={"expression": expression}))
        agent = ToolSubAgent("far_agent", NexusCalls(ENDPOINT))
        await agent.execute("echo", {"message": "hello"})
        wrong = await agent.execute("calculater", {})
        return {
            "found": found.tools[0].model_dump(include={"tool_id", "params"}),
            "result": result.result,
            "wrong": wrong.error.model_dump(include={"type", "message"}) if wrong.error else None,
            "brief": agent.get_brief_summary(),
        }
