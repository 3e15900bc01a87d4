"""Synchronisations with KnowHub: its resources name our tools, and our tools name its resources."""

from enum import StrEnum

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId

__all__ = [
    "KnowHubLink",
    "KnowHubPlan",
    "KnowHubSync",
    "LeftOutResource",
    "ResourceChange",
    "ResourceFailure",
    "SyncRequest",
    "SyncStatus",
    "ToolSlugs",
]


class SyncRequest(Contract):
    """The input of `SyncKnowHub`."""

    dry_run: bool = False
    """Only plan the changes."""


class KnowHubLink(Contract):
    """A link between a tool and a resource of KnowHub about the same thing."""

    tool_id: ToolId
    resource_id: str
    slug: str
    score: float
    """From 0 to 1. Links are made from 0.5 on."""
    reasons: tuple[str, ...]


class ToolSlugs(Contract):
    """Additions to `tool_slug_ids` of one of our tools."""

    tool_id: ToolId
    version: str
    add: tuple[str, ...]


class ResourceChange(Contract):
    """Additions to `toolhub_items` of a resource."""

    resource_id: str
    add: dict[str, str] = {}
    """Names of tools and groups, by id."""
    status: str | None = None
    """The new status; null: unchanged."""


class LeftOutResource(Contract):
    """An entry of KnowHub's list that cannot be linked."""

    entry: str
    """Its name, or its place in the list."""
    reason: str


class KnowHubPlan(Contract):
    """The changes on both sides."""

    links: tuple[KnowHubLink, ...] = ()
    """At most 200 of them."""
    links_total: int = 0
    ours: tuple[ToolSlugs, ...] = ()
    theirs: tuple[ResourceChange, ...] = ()
    left_out: tuple[LeftOutResource, ...] = ()
    """At most 50 of them."""
    left_out_total: int = 0


class ResourceFailure(Contract):
    """A resource that could not be changed."""

    resource_id: str
    reason: str


class SyncStatus(StrEnum):
    OFF = "off"
    """No KnowHub is configured."""
    PLANNED = "planned"
    """Only planned, nothing was changed."""
    DONE = "done"
    PARTLY = "partly"
    """Some resources could not be changed. The next synchronisation tries them again."""
    FAILED = "failed"
    """KnowHub could not be read, and nothing was changed."""


class KnowHubSync(Contract):
    """The outcome of a synchronisation, with its changes."""

    status: SyncStatus
    said: str
    """In words."""
    plan: KnowHubPlan = KnowHubPlan()
    failed: tuple[ResourceFailure, ...] = ()
