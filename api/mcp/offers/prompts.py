"""Prompts: one for each group of tools, and those of registered servers."""

from mcp import MCPError
from mcp_types import INVALID_PARAMS, CompleteRequestParams, GetPromptRequestParams, PaginatedRequestParams, PromptReference
from pydantic import JsonValue

from api.json_object import JsonObject
from api.mcp.catalog import Selection, ToolCatalog, refuse_cursor
from api.mcp.clients import answering, asked_again
from api.mcp.offers.passing import Passing, Place
from api.mcp.visit import Ctx, visit_of
from api.ports import Groups
from toolagent.contracts.manifest import ToolGroup

_MOST = 100
_GOAL: list[JsonValue] = [{"name": "goal", "description": "What is to be achieved with these tools.", "required": False}]


class Prompts:
    def __init__(self, catalog: ToolCatalog, groups: Groups, passing: Passing) -> None:
        self._catalog, self._groups, self._passing = catalog, groups, passing

    async def list(self, ctx: Ctx, params: PaginatedRequestParams | None) -> JsonObject:
        """One prompt for each group, with the group's id as name, and those of registered servers."""
        refuse_cursor(params)
        selection = visit_of(ctx).selection
        groups = [group for group in await self._groups.list_all() if _is_shown(group, selection)]
        prompts: list[JsonValue] = [
            {"name": group.group_id, "title": group.name, "description": group.description, "arguments": _GOAL} for group in groups
        ]
        if selection.is_all:
            prompts += [item for _, item in (await self._passing.prompts({group.group_id for group in groups})).values()]
        return {"prompts": prompts}

    async def get(self, ctx: Ctx, params: GetPromptRequestParams) -> JsonObject:
        """Raises MCPError for an unknown prompt."""
        selection = visit_of(ctx).selection
        found = await self._groups.get(params.name)
        group = found if found is not None and _is_shown(found, selection) else None
        if found is None and selection.is_all and (place := await self._place(params.name)) is not None:
            asked: JsonObject = {"name": place.name, "arguments": dict(params.arguments or {})}
            return await self._passing.ask(place, "prompts/get", asked_again(asked, params), answering(ctx))
        if group is None:
            raise MCPError(INVALID_PARAMS, f"name: there is no prompt {params.name[:128]!r}. prompts/list has the names.")
        text = await self._text(group, (params.arguments or {}).get("goal", ""))
        return {"description": group.description, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    async def complete(self, ctx: Ctx, params: CompleteRequestParams) -> JsonObject:
        """Ids of tools for our template; the server's answer for prompts and resources of a registered server."""
        selection = visit_of(ctx).selection
        ref = params.ref.model_dump(mode="json", by_alias=True, exclude_none=True)
        is_prompt = isinstance(params.ref, PromptReference)
        place: Place | None = None
        if selection.is_all:
            place = await (self._place(str(ref["name"])) if is_prompt else self._passing.place_of(str(ref["uri"])))
        if place is not None:
            told = params.model_dump(mode="json", by_alias=True, exclude_none=True)
            asked: JsonObject = {key: told[key] for key in ("argument", "context") if key in told}
            own = {**ref, "name": place.name} if is_prompt else ref
            return await self._passing.ask(place, "completion/complete", {**asked, "ref": own})
        values: list[str] = []
        if not isinstance(params.ref, PromptReference) and params.argument.name == "tool_id":
            known = await self._catalog.selected(selection)
            values = [tool_id for tool_id in known if tool_id.startswith(params.argument.value)]
        shown: list[JsonValue] = [*values[:_MOST]]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > _MOST}}

    async def _place(self, name: str) -> Place | None:
        """The server of a prompt; None for the prompt of a group, and an unknown one."""
        taken = {group.group_id for group in await self._groups.list_all()}
        found = (await self._passing.prompts(taken)).get(name) if name not in taken else None
        return found[0] if found else None

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


def _is_shown(group: ToolGroup, selection: Selection) -> bool:
    """Whether the URL selects this group, or all groups."""
    return selection.group in {None, group.group_id}
