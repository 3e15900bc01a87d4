"""Tools that match a need."""

from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import GroupId, ToolId
from toolagent.contracts.manifest import ToolManifest

__all__ = ["BaseTool", "CompositeTool", "MatchKind", "ToolMatch"]


class BaseTool(Contract):
    """A tool of a group, with its use there."""

    tool_id: ToolId
    name: str
    description: str
    usage: str


class CompositeTool(Contract):
    """No tool has that name, but these tools together do the same, in this order."""

    status: Literal["composite_tool"] = "composite_tool"
    message: str
    base_tools: tuple[BaseTool, ...]
    workflow_example: dict[str, JsonValue]
    """`description`, `steps` and an optional `workflow_json`."""
    group_id: GroupId


class MatchKind(StrEnum):
    """How a need was matched, in the order of trying."""

    DIRECT = "direct"
    COMPOSITE = "composite"
    FUZZY = "fuzzy"
    NONE = "none"


class ToolMatch(Contract):
    """`tools`: the tool with that id or name, or those found by words and meaning, the best first."""

    kind: MatchKind
    tools: tuple[ToolManifest, ...] = ()
    composite: CompositeTool | None = None
