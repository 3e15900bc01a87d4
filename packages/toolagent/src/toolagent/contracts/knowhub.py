"""What a synchronisation with KnowHub finds and changes: its resources name our tools, and our tools name its resources."""

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
    """What `SyncKnowHub` is started with."""

    dry_run: bool = False
    """Say what would be changed, and change nothing."""


class KnowHubLink(Contract):
    """One of our tools and one of KnowHub's resources are about the same."""

    tool_id: ToolId
    resource_id: str
    slug: str
    score: float
    """From 0 to 1; links from 0.5 on are made."""
    reasons: tuple[str, ...]


class ToolSlugs(Contract):
    """What one of our tools comes to name in `tool_slug_ids`; what it named before stays."""

    tool_id: ToolId
    version: str
    add: tuple[str, ...]


class ResourceChange(Contract):
    """What a resource comes to name in `toolhub_items`; what it named before stays."""

    resource_id: str
    add: dict[str, str] = {}
    """By the id of a tool or a group: its name."""
    status: str | None = None
    """Its new one; null: it stays as it is."""


class LeftOutResource(Contract):
    """An entry of KnowHub's list that can be linked with nothing."""

    entry: str
    """What it calls itself, or where it stands."""
    reason: str


class KnowHubPlan(Contract):
    """What is to be changed on both sides."""

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
    """No KnowHub is set."""
    PLANNED = "planned"
    """Nothing was changed: only the plan was asked for."""
    DONE = "done"
    PARTLY = "partly"
    """Some resources could not be changed; the next synchronisation tries them again."""
    FAILED = "failed"
    """KnowHub could not be read; nothing was changed."""


class KnowHubSync(Contract):
    """How a synchronisation ended, and what it changed or would change."""

    status: SyncStatus
    said: str
    """In words."""
    plan: KnowHubPlan = KnowHubPlan()
    failed: tuple[ResourceFailure, ...] = ()
