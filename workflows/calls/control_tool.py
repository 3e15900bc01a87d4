"""Starting, stopping or destroying a tool, on the host it lives on."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.client import names
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent_service import step_names, stubs
from workflows import options
from workflows.inputs import input_of, require_host


@workflow.defn(name=names.CONTROL_TOOL)
class ControlTool:
    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> ToolRoute:
        """Takes a `ToolControl` as plain JSON; invalid input fails at once."""
        control = input_of(ToolControl, given, surplus)
        require_host(control.host)
        return await workflow.execute_activity(
            stubs.control_tool, control, **options.control(control, step_names.control_queue(control.host))
        )
