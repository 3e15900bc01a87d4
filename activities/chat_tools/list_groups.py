"""Lists the groups of tools, with the order of their use."""

from pydantic import JsonValue

from activities.agent_tool import AgentTool, Arguments, Used
from engine.chats.desk import Desk

_SHOWN = {"group_id", "name", "description", "tool_ids", "usage_order", "usage_example"}


class ListGroups(Arguments):
    """It takes none."""


async def list_groups(_arguments: ListGroups, desk: Desk) -> Used:
    groups = await desk.tables.groups.list_all()
    shown: list[JsonValue] = [group.model_dump(mode="json", include=_SHOWN) | {"has_sessions": group.lifecycle} for group in groups]
    return Used({"groups": shown}, tool_ids=tuple(tool_id for group in groups for tool_id in group.tool_ids))


LIST_GROUPS = AgentTool(
    "list_groups",
    "List the groups: tools that are used together, in which order, and whether they are used in sessions (POST /groups/{id}/sessions).",
    ListGroups,
    list_groups,
)
