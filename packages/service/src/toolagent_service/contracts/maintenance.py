"""What looking after running tools takes and comes to."""

from pydantic import PositiveFloat

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId


class MaintainRequest(Contract):
    """What `Maintain` is started with: the seconds between two runs."""

    every_s: PositiveFloat


class HostTurn(Contract):
    """One host is to look after its tools."""

    host: str


class HostRound(Contract):
    """What a host did. `checked` counts tools that ran; without an answer of the host, `failed` says why."""

    host: str
    checked: int = 0
    unhealthy: tuple[ToolId, ...] = ()
    """Of these the second check in a row failed."""
    stopped: tuple[ToolId, ...] = ()
    """Unused for too long."""
    evicted: tuple[ToolId, ...] = ()
    """Hot ones that were too many."""
    started: tuple[ToolId, ...] = ()
    """Hot ones whose start has begun."""
    failed: str = ""


class ServiceRound(Contract):
    """What was done once for all hosts."""

    done: tuple[str, ...] = ()


class MaintainAccount(Contract):
    """What `Maintain` answers."""

    hosts: tuple[HostRound, ...] = ()
    service: ServiceRound = ServiceRound()
