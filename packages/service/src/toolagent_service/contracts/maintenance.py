"""Maintenance of running tools: inputs and results."""

from pydantic import PositiveFloat

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId


class MaintainRequest(Contract):
    """The input of `Maintain`: the seconds between two runs."""

    every_s: PositiveFloat


class HostTurn(Contract):
    """A round of maintenance on one host."""

    host: str


class HostRound(Contract):
    """The result of a round on one host. `checked` counts running tools. `failed` says why the host did not answer."""

    host: str
    checked: int = 0
    unhealthy: tuple[ToolId, ...] = ()
    """Tools whose second check in a row failed."""
    stopped: tuple[ToolId, ...] = ()
    """Tools that were unused for too long."""
    evicted: tuple[ToolId, ...] = ()
    """Hot tools beyond the limit."""
    started: tuple[ToolId, ...] = ()
    """Hot tools that are being started."""
    failed: str = ""


class ServiceRound(Contract):
    """The result of the work that is done once for all hosts."""

    done: tuple[str, ...] = ()


class MaintainAccount(Contract):
    """The result of `Maintain`."""

    hosts: tuple[HostRound, ...] = ()
    service: ServiceRound = ServiceRound()
