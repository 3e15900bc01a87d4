"""Starting, stopping and destroying tools on this host."""

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.heartbeats import beating
from engine.calling.host_tools import HostTools, OrderRefused
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.runtime import Progress
from toolagent.contracts.routes import ControlAction, ToolControl, ToolRoute
from toolagent_service import step_names


class ControlTool:
    def __init__(self, tools: HostTools) -> None:
        self._tools = tools

    @activity.defn(name=step_names.CONTROL)
    async def control_tool(self, control: ToolControl) -> ToolRoute:
        """The tool's route afterwards. Fails for good, with the error type of the cause, when the tool cannot be started."""
        async with beating() as turn:
            try:
                match control.action:
                    case ControlAction.START:
                        return await self._start(control.tool_id, turn.say)
                    case ControlAction.STOP:
                        return await self._tools.stop(control.tool_id)
                    case ControlAction.DESTROY:
                        return await self._tools.destroy(control.tool_id)
            except OrderRefused as refusal:
                raise ApplicationError(str(refusal), type=refusal.error_type.value, non_retryable=True) from refusal

    async def _start(self, tool_id: str, say: Progress) -> ToolRoute:
        try:
            return await self._tools.start(tool_id, say)
        except RuntimeFailure as failure:
            raise ApplicationError(failure.message, failure.details, type=failure.error_type.value, non_retryable=True) from failure
