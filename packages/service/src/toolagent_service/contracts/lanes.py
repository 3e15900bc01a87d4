"""What a front door and its lane hand to each other through Temporal."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolagent.contracts.contract import Contract
from toolagent.contracts.lanes import LaneFigures

LaneStatus = Literal["success", "error", "running", "moved", "unknown"]
"""`running`: its door makes it; `moved`: to a workflow of its own; `unknown`: its door does not know it (any more)."""


class LaneMode(StrEnum):
    """Which short calls share a lane: none, those without side effects, or those that act too."""

    OFF = "off"
    HARMLESS = "harmless"
    ALL = "all"


class Way(StrEnum):
    LANE = "lane"
    WORKFLOW = "workflow"


class LaneCall(Contract):
    """A call as it stands in the history. Its door has it in memory, so nothing reads `call` but people."""

    call_id: str
    tool_id: str
    call: JsonValue = None


class LaneBatch(Contract):
    calls: Annotated[tuple[LaneCall, ...], Field(min_length=1, max_length=256)]


class LaneEnd(Contract):
    """How a call left the lane."""

    call_id: str
    status: LaneStatus


class LaneEnds(Contract):
    """Of a batch, and the figures of the lane after it."""

    ends: tuple[LaneEnd, ...] = ()
    figures: LaneFigures = LaneFigures()
    is_ending: bool = False
    """The run is about to end: a batch that meets its end waits for a second or more."""
