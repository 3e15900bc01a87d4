"""Through a sub-agent, which keeps account of the calls."""

from temporalio import workflow

from toolagent.client.child import ChildCalls
from toolagent.client.sub_agent import ExecutionSummary, ToolSubAgent

__all__ = ["DelegatingAgent"]


@workflow.defn
class DelegatingAgent:
    """Has two tools called side by side, then one more."""

    @workflow.run
    async def run(self, conversation_id: str) -> ExecutionSummary:
        sub_agent = ToolSubAgent.for_conversation("tool_sub_agent_001", ChildCalls(), "conversation_agent_001", conversation_id)
        await sub_agent.execute_batch([("echo", {"message": "hello"}), ("calculator", {"expression": "1+2"})])
        await sub_agent.execute("calculator", {"expression": "1/0"}, timeout=10)
        return {"summary": sub_agent.get_execution_summary(), "brief": sub_agent.get_brief_summary()}
