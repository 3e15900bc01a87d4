"""Shows one tool: its schemas, its state, and an example of a call."""

import re
from typing import Annotated

from pydantic import Field, JsonValue

from activities.agent_tool import AgentTool, AgentToolRefused, Arguments, Used
from engine.chats.desk import Desk
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.core.suggestions import nearest


class GetToolDetails(Arguments):
    tool_id: Annotated[str, Field(max_length=128)]


async def get_tool_details(arguments: GetToolDetails, desk: Desk) -> Used:
    is_id = re.fullmatch(TOOL_ID_PATTERN, arguments.tool_id) is not None
    found = await desk.tables.registry.find(arguments.tool_id, None) if is_id else None
    if not isinstance(found, ToolEntry):
        near = nearest(arguments.tool_id, await desk.tables.registry.list_ids())
        hint = f"Did you mean {', '.join(near)}?" if near else "list_tools says which there are."
        raise AgentToolRefused(f"There is no tool {arguments.tool_id!r}. {hint}")
    tool = found.manifest
    route = await desk.tables.routes.get(tool.tool_id)
    example: JsonValue = tool.examples[0].input if tool.examples else {}
    return Used(
        {
            "tool_id": tool.tool_id,
            "name": tool.name,
            "description": tool.description,
            "version": tool.version,
            "category": tool.category,
            "backend_runtime": tool.backend_runtime.value,
            "group_ids": [*tool.group_ids],
            "status": tool.status.value,
            "state": route.state.value if route else "stopped",
            "input_schema": tool.input_schema,
            "output_schema": tool.output_schema,
            "call": {"method": "POST", "path": "/run_tool", "body": {"tool_id": tool.tool_id, "params": example}},
        },
        tool_ids=(tool.tool_id,),
    )


GET_TOOL_DETAILS = AgentTool(
    "get_tool_details",
    "Show one tool: what it does, the schemas of its parameters and of its answer, its state, and an example of a call.",
    GetToolDetails,
    get_tool_details,
)
