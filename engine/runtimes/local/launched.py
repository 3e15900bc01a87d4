"""A program of this machine that was launched."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from engine.runtimes.auditing.audit import Audited
from engine.runtimes.process.processes import Process
from engine.runtimes.sandbox.egress import SandboxNetwork


@dataclass(slots=True)
class Launched:
    """It, and all that ends with it. `calls` are those that it answers now."""

    process: Process
    way: SandboxNetwork
    stack: AsyncExitStack
    audited: Audited
    calls: int = 0
