"""The faults that a stand-in of an IM server is told to have."""

from typing import Annotated, Literal

from pydantic import Field

from toolagent.testing.servers.told_faults import ToldFault

__all__ = ["IM_FAULTS", "ImFault", "ImFaultKind", "ImMoment"]

ImFaultKind = Literal[
    "absent",
    "unauthorized",
    "drop",
    "drop_after",
    "garbage",
    "unknown_type",
    "twice",
    "too_large",
    "flood",
    "stall",
    "lost_ack",
    "slow_reader",
]
ImMoment = Literal["connect", "deliver", "receive"]

IM_FAULTS: dict[str, str] = {
    "absent": "the connection is refused with 503",
    "unauthorized": "the connection is refused with 401",
    "drop": "the connection is closed instead of a delivery",
    "drop_after": "the connection is closed after a delivery, and the acknowledgement is lost",
    "garbage": "frames that are no messages come before a delivery",
    "unknown_type": "a message of an unknown type comes before a delivery",
    "twice": "a message is delivered twice",
    "too_large": "a frame of `count` bytes comes before a delivery",
    "flood": "`count` messages of `flood` come before a delivery",
    "stall": "the server stands still for `seconds`, and answers no ping",
    "lost_ack": "a message is kept, and the connection is closed instead of its acknowledgement",
    "slow_reader": "nothing that the contact sends is read for `seconds`",
}
_MOMENTS: dict[str, ImMoment] = {"absent": "connect", "unauthorized": "connect", "lost_ack": "receive", "slow_reader": "receive"}


class ImFault(ToldFault):
    """Happens `times` times, to connections, deliveries or messages of `contact`, or of all."""

    kind: ImFaultKind
    contact: str | None = None
    seconds: Annotated[float, Field(ge=0)] = 1.0
    count: Annotated[int, Field(ge=1)] = 500

    @property
    def moment(self) -> ImMoment:
        return _MOMENTS.get(self.kind, "deliver")

    def hits(self, moment: ImMoment, contact: str) -> bool:
        return self.moment == moment and self.contact in {None, contact}
