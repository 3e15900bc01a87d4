"""By the typed stubs: the same call with types, and with everything set that should be."""

from temporalio import workflow

from toolagent.client import child, names
from toolagent.contracts.calls import ToolCall, ToolResult

__all__ = ["TypedAgent"]


@workflow.defn
class TypedAgent:
    """Makes one call by the stub itself, then one by `call_tool`, which sets the options."""

    @workflow.run
    async def run(self, expression: str) -> list[ToolResult]:
        by_stub = await workflow.execute_child_workflow(
            child.InvokeTool.run,
            ToolCall(tool_id="calculator", params={"expression": expression}),
            id=f"call-{workflow.uuid4().hex}",
            task_queue=names.TASK_QUEUE,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        )
        missing = await child.call_tool(ToolCall(tool_id="calculater", params={"expression": expression}))
        return [by_stub, missing]
