"""Inputs that a tool's version is not asked any more, because they end its process."""

from datetime import datetime

from pydantic import JsonValue

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId

__all__ = ["LiftedQuarantine", "Quarantine", "QuarantinedInput"]


class QuarantinedInput(Contract):
    """Calls of the version with these parameters are `rejected`. `input` is the hash of the parameters, secrets masked."""

    tool_id: ToolId
    version: str
    input: str
    params: dict[str, JsonValue] | None = None
    """As in the record of a call; null: too large to be kept."""
    crashes: int
    """How often they ended the process, as far as is known."""
    error: str
    """How it ended the last time."""
    call_ids: tuple[str, ...] = ()
    quarantined_at: datetime


class Quarantine(Contract):
    """Of all versions of a tool, the newest first."""

    inputs: tuple[QuarantinedInput, ...]


class LiftedQuarantine(Contract):
    """How many inputs may be asked again."""

    lifted: int
