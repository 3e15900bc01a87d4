"""What the docker runtime is made of."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.docker.engine import Engine
from engine.runtimes.docker.settings import DockerSettings
from engine.runtimes.ownership import Owner
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.identity import PAYLOAD

__all__ = ["DockerParts"]


@dataclass(frozen=True, slots=True)
class DockerParts:
    """Whoever makes them closes the engine. `egress` is for the same user as the containers."""

    settings: DockerSettings
    engine: Engine
    egress: Egress
    index_hosts: Callable[[], Awaitable[tuple[str, ...]]] | None = None
    """Asks where packages come from, which is what build containers may reach. May raise IndexesUnknown."""

    @classmethod
    def by_default(cls, data: Path, state: Path) -> "DockerParts":
        """The local engine, used as no setting says otherwise."""
        identity = PAYLOAD if os.geteuid() == 0 else None
        settings = DockerSettings(data, state, Owner.of_this_process(state), host="", identity=identity)
        return cls(settings, Engine(), Egress(state, settings.policy.private_hosts, identity))
