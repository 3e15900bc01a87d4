"""A launched program of this machine."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from engine.runtimes.auditing.audit import Audited
from engine.runtimes.process.processes import Process
from engine.runtimes.sandbox.egress import SandboxNetwork


@dataclass(slots=True)
class Launched:
    """The process and all that ends with it. `calls` counts its running calls."""

    process: Process
    way: SandboxNetwork
    stack: AsyncExitStack
    audited: Audited
    calls: int = 0
