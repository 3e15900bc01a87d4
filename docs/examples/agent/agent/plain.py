"""By name, with plain JSON: needs nothing of Tool Agent installed."""

from typing import Any

from temporalio import workflow

__all__ = ["PlainAgent"]


@workflow.defn
class PlainAgent:
    """Adds two numbers. A workflow in any language of Temporal can do the same."""

    @workflow.run
    async def run(self, expression: str) -> dict[str, Any]:
        return await workflow.execute_child_workflow(
            "InvokeTool",
            {"tool_id": "calculator", "params": {"expression": expression}},
            # An id of this form is the call's id, under which GET /tasks/{id} knows it; it is used once.
            id=f"call-{workflow.uuid4().hex}",
            task_queue="tool-agent",
            # The default would terminate a call in flight, and leave it without an end.
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            result_type=dict,
        )
