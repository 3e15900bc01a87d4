"""Plans the changes with which both sides name each other.

Existing names are kept.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from toolagent.contracts.knowhub import KnowHubLink, KnowHubPlan, LeftOutResource, ResourceChange, ToolSlugs
from toolagent.contracts.manifest import ToolGroup, ToolManifest, ToolStatus
from toolagent_service.knowhub.matching import best_links
from toolagent_service.knowhub.resources import CONNECTED, NOT_CONNECTED, Resource, resource_of

_TOLD, _TOLD_LEFT_OUT = 200, 50
"""The most links and left-out entries in a plan."""


class NotMergeableError(Exception):
    """A change would lose content of the resource."""


def plan_of(
    tools: Sequence[ToolManifest], groups: Sequence[ToolGroup], resources: Sequence[Resource], left_out: Sequence[LeftOutResource] = ()
) -> KnowHubPlan:
    """The plan for our active tools. Groups are named together with their tools."""
    ours = [tool for tool in tools if tool.external_source is None and tool.status is ToolStatus.ACTIVE]
    links = {tool.tool_id: best_links(tool, resources) for tool in ours}
    names = {tool.tool_id: tool.name for tool in ours}
    changes = [_change(resource, _items(resource, links, names, groups)) for resource in resources]
    every = [link for found in links.values() for link in found]
    return KnowHubPlan(
        links=tuple(every[:_TOLD]),
        links_total=len(every),
        ours=tuple(slugs for tool in ours if (slugs := _slugs(tool, links[tool.tool_id])).add),
        theirs=tuple(change for change in changes if change is not None),
        left_out=tuple(left_out[:_TOLD_LEFT_OUT]),
        left_out_total=len(left_out),
    )


def merged(said: Mapping[str, JsonValue], change: ResourceChange) -> dict[str, JsonValue] | None:
    """The current metadata of a resource with the change; None if nothing is left to change.

    Raises NotMergeableError.
    """
    resource = resource_of(said)
    if resource is None:
        return None
    new = {name: title for name, title in change.add.items() if name not in resource.items}
    status = change.status if resource.status in {"", NOT_CONNECTED} else None
    if not new and status is None:
        return None
    named = resource.metadata.get("toolhub_items")
    if not isinstance(named, list | None):
        raise NotMergeableError(f"{resource.resource_id!r} has toolhub_items that are no list. Make them one in KnowHub.")
    if not isinstance(said.get("metadata"), dict | None):
        raise NotMergeableError(f"{resource.resource_id!r} has metadata that is no object. Make it one in KnowHub.")
    items: list[JsonValue] = [*(named or ()), *({name: title} for name, title in new.items())]
    return {**resource.metadata, "toolhub_items": items, **({"status": status} if status else {})}


def _slugs(tool: ToolManifest, links: Sequence[KnowHubLink]) -> ToolSlugs:
    new = dict.fromkeys(link.slug for link in links if link.slug not in tool.tool_slug_ids)
    return ToolSlugs(tool_id=tool.tool_id, version=tool.version, add=tuple(new))


def _items(
    resource: Resource, links: Mapping[str, Sequence[KnowHubLink]], names: Mapping[str, str], groups: Sequence[ToolGroup]
) -> dict[str, str]:
    """Names by id: linked tools first, then their groups."""
    about = [tool_id for tool_id, found in links.items() if any(link.resource_id == resource.resource_id for link in found)]
    around = {group.group_id: group.name for group in groups if not {*about}.isdisjoint(group.tool_ids)}
    return {**{tool_id: names[tool_id] for tool_id in about}, **around}


def _change(resource: Resource, items: Mapping[str, str]) -> ResourceChange | None:
    """A status set by hand (`测试中`) stays."""
    new = {name: title for name, title in items.items() if name not in resource.items}
    status = CONNECTED if items and resource.status in {"", NOT_CONNECTED} else None
    return ResourceChange(resource_id=resource.resource_id, add=new, status=status) if new or status else None
