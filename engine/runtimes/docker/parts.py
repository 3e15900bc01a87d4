"""What the docker runtime is made of."""

import contextlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.runtimes.docker.engine import Engine
from engine.runtimes.docker.published import PublishedPorts
from engine.runtimes.docker.settings import DockerSettings
from engine.runtimes.ownership import Owner
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.identity import PAYLOAD
from engine.runtimes.sandbox.package_indexes import IndexesUnknown

__all__ = ["DockerParts"]


@dataclass(frozen=True, slots=True)
class DockerParts:
    """Whoever makes them closes the engine. `egress` is for the same user as the containers."""

    settings: DockerSettings
    engine: Engine
    egress: Egress
    index_hosts: Callable[[], Awaitable[tuple[str, ...]]] | None = None
    """Asks where packages come from, which is what builds may reach. May raise IndexesUnknown."""
    ports: PublishedPorts = field(default_factory=PublishedPorts)

    async def known_index(self) -> tuple[str, ...]:
        """Where packages come from; nowhere when that cannot be said."""
        with contextlib.suppress(IndexesUnknown):
            return await self.index_hosts() if self.index_hosts is not None else ()
        return ()

    @classmethod
    def by_default(cls, data: Path, state: Path) -> "DockerParts":
        """The local engine, used as no setting says otherwise."""
        identity = PAYLOAD if os.geteuid() == 0 else None
        settings = DockerSettings(data, state, Owner.of_this_process(state), host="", identity=identity)
        return cls(settings, Engine(), Egress(state, settings.policy.private_hosts, identity))
