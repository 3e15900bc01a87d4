"""Starts, stops and destroys tools on this host."""

from temporalio import activity

from activities.failures import final
from activities.heartbeats import beating
from engine.calling.host_tools import HostTools, OrderRefused
from engine.calling.turn import Turn
from engine.runtimes.failures import RuntimeFailure
from toolagent.contracts.routes import ControlAction, ToolControl, ToolRoute
from toolagent_service import step_names


class ControlTool:
    def __init__(self, tools: HostTools) -> None:
        self._tools = tools

    @activity.defn(name=step_names.CONTROL)
    async def control_tool(self, control: ToolControl) -> ToolRoute:
        """The tool's route afterwards. A tool that cannot be started is a final failure, with the error type of its cause."""
        async with beating() as turn:
            try:
                match control.action:
                    case ControlAction.START:
                        return await self._started(control, turn)
                    case ControlAction.STOP:
                        return await self._tools.stop(control.tool_id)
                    case ControlAction.DESTROY:
                        return await self._tools.destroy(control.tool_id)
            except OrderRefused as refusal:
                raise final(str(refusal), refusal.error_type.value) from refusal

    async def _started(self, control: ToolControl, turn: Turn) -> ToolRoute:
        try:
            return await self._tools.start(control.tool_id, turn.say)
        except RuntimeFailure as failure:
            raise final(failure.message, failure.error_type.value, failure.details) from failure
