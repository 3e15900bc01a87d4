"""Groups that answer for missing tools: a request names one of their triggers."""

import re
from collections.abc import Iterable, Mapping

from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.matching import BaseTool, CompositeTool

__all__ = ["composite_of", "covering", "members_of"]

_JOINTS = re.compile(r"[\s_:/.\-]+")


def covering(query: str, groups: Iterable[ToolGroup]) -> tuple[ToolGroup, str] | None:
    """The group with the longest trigger in the query, and that trigger. Spaces within the words do not matter."""
    said = _plain(query)
    named = [(trigger, group) for group in groups for trigger in group.triggers if _names(said, _plain(trigger))]
    if not named:
        return None
    trigger, group = max(named, key=lambda found: len(found[0]))
    return group, trigger


def members_of(group: ToolGroup) -> tuple[str, ...]:
    """Its tools in the order of their use."""
    return tuple(dict.fromkeys((*group.usage_order, *(step.tool_id for step in group.steps), *group.tool_ids)))


def composite_of(group: ToolGroup, trigger: str, tools: Mapping[str, ToolManifest]) -> CompositeTool:
    """The answer for a trigger. Missing tools of the group are left out."""
    usages = {step.tool_id: step.usage for step in group.steps}
    present = [tools[tool_id] for tool_id in members_of(group) if tool_id in tools]
    return CompositeTool(
        message=f"{trigger} 已通过 {group.name} 的基础工具接入。What {trigger} does, the tools of the group {group.group_id} do together.",
        base_tools=tuple(
            BaseTool(tool_id=tool.tool_id, name=tool.name, description=tool.description, usage=usages.get(tool.tool_id, ""))
            for tool in present
        ),
        workflow_example=group.workflow_example or ({"description": group.usage_example, "steps": []} if group.usage_example else {}),
        group_id=group.group_id,
    )


def _plain(text: str) -> str:
    return _JOINTS.sub(" ", text).strip().lower()


def _names(said: str, trigger: str) -> bool:
    if not trigger:
        return False
    # Chinese has no spaces, so only Latin letters and digits continue a word.
    as_word = re.search(rf"(?<![a-z0-9]){re.escape(trigger)}(?![a-z0-9])", said)
    return as_word is not None or said.replace(" ", "") == trigger.replace(" ", "")
