"""Quarantine: inputs that are refused because they end the tool's process."""

from datetime import datetime

from pydantic import JsonValue

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId

__all__ = ["LiftedQuarantine", "Quarantine", "QuarantinedInput"]


class QuarantinedInput(Contract):
    """An input of a tool version whose calls are `rejected`. `input` is the hash of the parameters, with secrets masked."""

    tool_id: ToolId
    version: str
    input: str
    params: dict[str, JsonValue] | None = None
    """The parameters as in the record of a call; null: too large."""
    crashes: int
    """How often the input ended the process, as far as known."""
    error: str
    """The last crash."""
    call_ids: tuple[str, ...] = ()
    quarantined_at: datetime


class Quarantine(Contract):
    """The quarantined inputs of all versions of a tool, the newest first."""

    inputs: tuple[QuarantinedInput, ...]


class LiftedQuarantine(Contract):
    """The number of inputs that are allowed again."""

    lifted: int
