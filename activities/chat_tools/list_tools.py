"""Lists tools, the best matches first."""

from typing import Annotated

from pydantic import Field, JsonValue

from activities.agent_tool import AgentTool, Arguments, Used
from engine.chats.desk import Desk
from engine.registry.matching.texts import Filters
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.texts import shortened

_LONGEST = 160


class ListTools(Arguments):
    keyword: Annotated[str, Field(max_length=500, description="A need in words, Chinese or English; or an id or a name. Empty: all.")] = ""
    category: Annotated[str | None, Field(max_length=64, description="Only tools of this category.")] = None
    backend_runtime: BackendRuntime | None = None
    group: Annotated[str | None, Field(max_length=128, description="Only tools of the group with this id.")] = None
    limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 20


async def list_tools(arguments: ListTools, desk: Desk) -> Used:
    filters = Filters(arguments.category, arguments.backend_runtime, None, arguments.group)
    entries, total = await desk.tables.matching.search(arguments.keyword, filters, arguments.limit)
    tools: list[JsonValue] = [_line(entry) for entry in entries]
    ids = tuple(entry.manifest.tool_id for entry in entries)
    return Used({"total": total, "shown": len(tools), "tools": tools}, tool_ids=ids)


def _line(entry: ToolEntry) -> JsonValue:
    tool = entry.manifest
    said = tool.description or tool.name
    return {
        "tool_id": tool.tool_id,
        "name": tool.name,
        "description": shortened(said, _LONGEST),
        "category": tool.category,
        "backend_runtime": tool.backend_runtime.value,
        "group_ids": [*tool.group_ids],
    }


LIST_TOOLS = AgentTool(
    "list_tools",
    "List the tools that there are, with a keyword the best match first. Ids, names and a line each; get_tool_details has the rest.",
    ListTools,
    list_tools,
)
