"""Reports the status of a task."""

from typing import Annotated

from pydantic import Field

from activities.agent_tool import AgentTool, AgentToolRefused, Arguments, Used
from engine.chats.desk import Desk
from toolagent.contracts.task_specs import is_making

_LINES = 8
_SHOWN = ("task_id", "status", "stage", "progress", "tool_id", "tool_ids", "reason", "cost_usd")


class CheckTaskStatus(Arguments):
    task_id: Annotated[str, Field(max_length=64, description="As submit_task gave it, such as create_a1b2c3d4.")]


async def check_task_status(arguments: CheckTaskStatus, desk: Desk) -> Used:
    task = await desk.tables.tasks.get(arguments.task_id) if is_making(arguments.task_id) else None
    if task is None:
        raise AgentToolRefused(f"There is no task {arguments.task_id!r}. Its id is create_ or repair_ and eight hex digits.")
    log = "\n".join(note.text for note in await desk.tables.notes.tail(task.task_id, _LINES))
    told = task.model_dump(mode="json", include={*_SHOWN})
    return Used({**{name: told[name] for name in _SHOWN}, "log": log}, tool_ids=task.tool_ids)


CHECK_TASK_STATUS = AgentTool(
    "check_task_status",
    "Say how far a task is that makes or repairs a tool: its status, its stage, the last lines of its log and, once it has ended, how.",
    CheckTaskStatus,
    check_task_status,
)
