"""The servers that the RunComfy test server launched and stopped, and its faults.

`docs/testing-servers.md` says what each fault does.
"""

import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal, get_args

from pydantic import Field, JsonValue

from toolagent.testing.servers.told_faults import ToldFault

__all__ = ["FAULTS", "Fault", "FaultKind", "Ledger", "Rented"]

FaultKind = Literal[
    "400",
    "401",
    "402",
    "403",
    "413",
    "429",
    "500",
    "garbage",
    "nan",
    "lost_answer",
    "slow",
    "never_ready",
    "fails_to_start",
    "vanish",
    "ws_drop",
    "forget",
    "run_error",
]
FAULTS: tuple[FaultKind, ...] = get_args(FaultKind)

_Cloud = Literal["launch", "status", "stop", "list", "workflows"]
Operation = Literal[_Cloud, "upload", "prompt", "history", "view"]

_OF_LAUNCH, _OF_RUN = ("never_ready", "fails_to_start"), ("vanish", "ws_drop", "forget", "run_error")


class Fault(ToldFault):
    """Happens `times` times, after `after` matching requests without it. Without `at` it hits every operation of the cloud API."""

    kind: FaultKind
    at: Operation | None = None
    after: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] = 1.0
    """With slow."""
    retry_after: Annotated[float, Field(ge=0)] = 1.0
    """Seconds, with 429."""

    def hits(self, operation: Operation) -> bool:
        if self.kind in _OF_LAUNCH:
            return operation == "launch"
        if self.kind in _OF_RUN:
            return operation == "prompt"
        return operation == self.at if self.at else operation in get_args(_Cloud)

    def spares(self) -> bool:
        spared = self.after > 0
        self.after -= spared
        return spared


@dataclass
class Rented:
    """One server since its launch. It stays in the ledger after its end."""

    server_id: str
    user_id: str
    server_type: str
    estimated_duration: int
    workflow_version_id: str
    launched_at: datetime
    ready_after_s: float | None
    """None: never."""
    fails: bool = False
    ended_at: datetime | None = None
    ended_by: Literal["stopped", "vanished"] | None = None
    stops_again: int = 0
    """Stops after its end."""
    stops_unanswered: int = 0
    """Stops whose answer was lost, so a client may send another."""
    _began: float = field(default_factory=time.monotonic)

    @property
    def status(self) -> str:
        if self.ended_by is not None:
            return "Deleting"
        if self.ready_after_s is None or time.monotonic() - self._began < self.ready_after_s:
            return "Starting"
        return "Failed" if self.fails else "Ready"

    def end(self, by: Literal["stopped", "vanished"]) -> None:
        self.ended_at, self.ended_by = datetime.now(UTC), by


class Ledger:
    """All servers, in the order of their launches."""

    def __init__(self) -> None:
        self.servers: dict[str, Rented] = {}
        self.refused_stops = 0
        """Stops of servers that are unknown or had ended."""

    def running(self) -> list[Rented]:
        return [one for one in list(self.servers.values()) if one.ended_by is None]

    def shown(self) -> dict[str, JsonValue]:
        every = list(self.servers.values())
        ends = [one.ended_by for one in every]
        return {
            "launched": len(every),
            "stopped": ends.count("stopped"),
            "vanished": ends.count("vanished"),
            "running": [one.server_id for one in every if one.ended_by is None],
            "stops_of_none": self.refused_stops,
            "servers": [_entry(one) for one in every],
        }


def _entry(one: Rented) -> dict[str, JsonValue]:
    told = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(one).items() if name != "_began"}
    return {**told, "status": one.status}
