"""What a stand-in of RunComfy was asked to start and stop, and the faults that it is told to have."""

import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

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
Operation = Literal["launch", "status", "stop", "list", "workflows", "upload", "prompt", "history", "view"]

FAULTS: dict[str, str] = {
    "400": "the request is refused",
    "401": "the key is refused",
    "402": "the account has no money",
    "403": "the user may not do this",
    "413": "what is sent is too large",
    "429": "too many requests; `retry_after` is the header",
    "500": "an error of the provider",
    "garbage": "an answer that is no JSON",
    "nan": "an answer that holds NaN, as when a node puts it out",
    "lost_answer": "the request is carried out, and the connection is closed instead of an answer",
    "slow": "the request is carried out, and answered `seconds` later",
    "never_ready": "the next server that is launched stays `Starting`",
    "fails_to_start": "the next server that is launched becomes `Failed`",
    "vanish": "the next prompt makes its server disappear while it runs",
    "ws_drop": "the next prompt closes its WebSocket while it runs",
    "forget": "the next prompt is lost, as when ComfyUI is started anew",
    "run_error": "the next prompt ends with an error of a node",
}
_CLOUD: tuple[Operation, ...] = ("launch", "status", "stop", "list", "workflows")
_OF_LAUNCH, _OF_RUN = ("never_ready", "fails_to_start"), ("vanish", "ws_drop", "forget", "run_error")


class Fault(ToldFault):
    """Happens `times` times, after `after` requests that it spares. Without `at` it hits every operation of the cloud API."""

    kind: FaultKind
    at: Operation | None = None
    after: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0, description="With slow.")] = 1.0
    retry_after: Annotated[float, Field(ge=0, description="Seconds, with 429.")] = 1.0

    def hits(self, operation: Operation) -> bool:
        if self.kind in _OF_LAUNCH:
            return operation == "launch"
        if self.kind in _OF_RUN:
            return operation == "prompt"
        return operation == self.at if self.at else operation in _CLOUD

    def spares(self) -> bool:
        spared = self.after > 0
        self.after -= spared
        return spared


@dataclass
class Rented:
    """One server, from its launch on. It stays in the ledger when it is gone."""

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
    """Stops of it after its end."""
    stops_unanswered: int = 0
    """Stops of it whose answer was lost, so that another one is no wonder."""
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
    """All servers there ever were, in the order of their launches."""

    def __init__(self) -> None:
        self.servers: dict[str, Rented] = {}
        self.refused_stops = 0
        """Stops of servers that had been stopped before, or never were."""

    def running(self, user_id: str | None = None) -> list[Rented]:
        return [one for one in list(self.servers.values()) if one.ended_by is None and user_id in {None, one.user_id}]

    def shown(self) -> dict[str, JsonValue]:
        every = list(self.servers.values())
        return {
            "launched": len(every),
            "stopped": sum(one.ended_by == "stopped" for one in every),
            "vanished": sum(one.ended_by == "vanished" for one in every),
            "running": [one.server_id for one in every if one.ended_by is None],
            "stops_of_none": self.refused_stops,
            "servers": [_entry(one) for one in every],
        }


def _entry(one: Rented) -> dict[str, JsonValue]:
    told = {name: value for name, value in asdict(one).items() if not name.startswith("_")}
    times = {name: value.isoformat() for name, value in told.items() if isinstance(value, datetime)}
    return {**told, **times, "status": one.status}
