"""Prompts: how the tools of a group are used together."""

from mcp import MCPError
from mcp_types import INVALID_PARAMS, CompleteRequestParams, GetPromptRequestParams, PaginatedRequestParams, PromptReference
from pydantic import JsonValue

from api.mcp.catalog import ToolCatalog
from api.mcp.visit import Ctx, visit_of
from api.ports import Groups
from toolagent.contracts.manifest import ToolGroup

_MOST = 100
_GOAL: list[JsonValue] = [{"name": "goal", "description": "What is to be achieved with these tools.", "required": False}]


class Prompts:
    def __init__(self, catalog: ToolCatalog, groups: Groups) -> None:
        self._catalog, self._groups = catalog, groups

    async def list(self, ctx: Ctx, _params: PaginatedRequestParams | None) -> dict[str, JsonValue]:
        """One prompt for each group, called as the group is."""
        narrowed = visit_of(ctx).selection.group
        groups = [group for group in await self._groups.list_all() if narrowed in {None, group.group_id}]
        return {
            "prompts": [
                {"name": group.group_id, "title": group.name, "description": group.description, "arguments": _GOAL} for group in groups
            ]
        }

    async def get(self, _ctx: Ctx, params: GetPromptRequestParams) -> dict[str, JsonValue]:
        """Raises MCPError for a group that is not there."""
        group = await self._groups.get(params.name)
        if group is None:
            raise MCPError(INVALID_PARAMS, f"name: there is no prompt {params.name[:128]!r}. prompts/list has the names.")
        text = await self._text(group, (params.arguments or {}).get("goal", ""))
        return {"description": group.description, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    async def complete(self, _ctx: Ctx, params: CompleteRequestParams) -> dict[str, JsonValue]:
        """Ids of tools for the template of tools; nothing else has values to choose from."""
        values: list[str] = []
        if not isinstance(params.ref, PromptReference) and params.argument.name == "tool_id":
            known = (await self._catalog.now()).entries
            values = [tool_id for tool_id in known if tool_id.startswith(params.argument.value)]
        shown: list[JsonValue] = [*values[:_MOST]]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > _MOST}}

    async def _text(self, group: ToolGroup, goal: str) -> str:
        names = {tool_id: name for name, tool_id in (await self._catalog.now()).names.items()}
        order = group.usage_order or group.tool_ids
        lines = [f"Use the tools of the group {group.name}. {group.description}".strip()]
        if goal:
            lines.append(f"The goal: {goal}")
        lines += [f"{at}. {names.get(tool_id, tool_id)}" for at, tool_id in enumerate(order, 1)]
        lines += [f"- {names.get(step.tool_id, step.tool_id)} ({step.role.value}): {step.usage}" for step in group.steps if step.usage]
        if group.lifecycle:
            lines.append("What is launched has to be stopped, also after a failure.")
        return "\n".join([*lines, group.usage_example]).strip()
