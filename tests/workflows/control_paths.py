"""The paths of starting and stopping a tool."""

import asyncio
from collections.abc import Mapping

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from tests.workflows.ends import Walk
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.routes import ControlAction, RunState, ToolControl, ToolRoute
from toolagent_service import step_names

__all__ = ["PATHS"]

BENIGN = ApplicationErrorCategory.BENIGN


@activity.defn(name=step_names.CONTROL)
async def obey(control: ToolControl) -> ToolRoute:
    """A host that can stop tools and cannot start any."""
    if control.action is ControlAction.START:
        raise ApplicationError("No environment.", type=ErrorType.DEPENDENCY_ERROR.value, non_retryable=True, category=BENIGN)
    return ToolRoute(tool_id=control.tool_id, state=RunState.STOPPED, host=control.host)


async def play_control(stage: Stage, action: ControlAction) -> AnyHandle:
    host = f"host-{action.value}"
    async with stage.workers([obey], step_names.control_queue(host)):
        handle = await stage.start(
            names.CONTROL_TOOL, ToolControl(tool_id="echo", action=action, host=host), workflow_id=f"control-{stage.queue}"
        )
        await asyncio.gather(handle.result(), return_exceptions=action is ControlAction.START)
    return handle


async def stopped(stage: Stage) -> AnyHandle:
    return await play_control(stage, ControlAction.STOP)


async def start_failed(stage: Stage) -> AnyHandle:
    return await play_control(stage, ControlAction.START)


PATHS: Mapping[str, Walk] = {"stopped": Walk(stopped, "stopped"), "start-failed": Walk(start_failed, "failed")}
