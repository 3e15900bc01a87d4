"""Starting, stopping or destroying a tool, on the host it lives on."""

from temporalio import workflow

from toolagent.client import names, stubs
from toolagent.contracts.routes import ToolControl, ToolRoute
from workflows import options

__all__ = ["ControlTool"]


@workflow.defn(name=names.CONTROL_TOOL)
class ControlTool:
    @workflow.run
    async def run(self, control: ToolControl) -> ToolRoute:
        return await workflow.execute_activity(stubs.control_tool, control, **options.control(control, names.control_queue(control.host)))
