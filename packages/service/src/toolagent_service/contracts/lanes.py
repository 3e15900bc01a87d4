"""Messages between a front door and its lane through Temporal."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolagent.contracts.contract import Contract
from toolagent.contracts.lanes import LaneFigures

LaneStatus = Literal["success", "error", "running", "moved", "unknown"]
"""`running`: its door makes it; `moved`: to a workflow of its own; `unknown`: unknown to its door."""


class LaneMode(StrEnum):
    """Which short calls use a lane: none, those without side effects, or all."""

    OFF = "off"
    HARMLESS = "harmless"
    ALL = "all"


class Way(StrEnum):
    LANE = "lane"
    WORKFLOW = "workflow"


class LaneCall(Contract):
    """A call in the history of a lane. Its door has the call in memory, so `call` is for people only."""

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
    """The ends of the calls of a batch, and the figures of the lane after it."""

    ends: tuple[LaneEnd, ...] = ()
    figures: LaneFigures = LaneFigures()
    is_ending: bool = False
    """The run is about to end. A batch sent at that moment waits for a second or more."""
