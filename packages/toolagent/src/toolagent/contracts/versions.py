"""The versions of a tool."""

from datetime import datetime

from toolagent.contracts.contract import Contract
from toolagent.contracts.making import Evidence
from toolagent.contracts.manifest import ToolStatus

__all__ = ["ToolVersion", "ToolVersions"]


class ToolVersion(Contract):
    """One version of a tool. `is_active`: it is the default for calls. Only versions with `status` active can be called."""

    tool_id: str
    version: str
    status: ToolStatus
    is_active: bool
    created_at: datetime
    evidence: Evidence | None = None
    """The evidence of a version that a task made."""


class ToolVersions(Contract):
    """All versions of a tool, the newest first."""

    tool_id: str
    active_version: str
    versions: tuple[ToolVersion, ...]
