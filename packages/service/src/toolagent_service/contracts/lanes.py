"""What a front door and its lane hand to each other through Temporal."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolagent.contracts.contract import Contract

__all__ = ["LaneBatch", "LaneCall", "LaneEnd", "LaneEnds", "LaneFigures", "LaneStatus"]

LaneStatus = Literal["success", "error", "moved", "unknown"]
"""`moved`: to a workflow of its own; `unknown`: its door does not know it (any more)."""


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
    ends: tuple[LaneEnd, ...] = ()


class LaneFigures(Contract):
    """What a lane has done so far, in the eyes of its workflow."""

    updates: int = 0
    calls: int = 0
    moved: int = 0
