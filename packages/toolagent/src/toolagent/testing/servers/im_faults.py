"""Faults of the IM test server; `docs/testing-servers.md` says what each does."""

from typing import Annotated, Literal, get_args

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

IM_FAULTS: tuple[ImFaultKind, ...] = get_args(ImFaultKind)
_MOMENTS: dict[str, ImMoment] = {"absent": "connect", "unauthorized": "connect", "lost_ack": "receive", "slow_reader": "receive"}


class ImFault(ToldFault):
    """Happens `times` times, to connections, deliveries or messages of `contact`, or of all contacts."""

    kind: ImFaultKind
    contact: str | None = None
    seconds: Annotated[float, Field(ge=0)] = 1.0
    count: Annotated[int, Field(ge=1)] = 500

    def hits(self, moment: ImMoment, contact: str) -> bool:
        return _MOMENTS.get(self.kind, "deliver") == moment and self.contact in {None, contact}
