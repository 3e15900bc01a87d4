"""Settings of all containers on this host."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from engine.runtimes.docker_engine.labels import Marks, Origin
from engine.runtimes.docker_engine.seals import Seals
from engine.runtimes.process.ownership import Owner
from engine.runtimes.sandbox.identity import Identity
from toolagent.contracts.sandbox import SandboxPolicy


@dataclass(frozen=True, slots=True)
class DockerSettings:
    """`data` is the folder projects are under, `state` the state directory. Times are in seconds.

    `identity` is the ordinary user that containers run as when we are root; without it they run as we do. `observed`: of tools that may
    reach no host it is known, too, which they ask for.
    """

    data: Path
    state: Path
    owner: Owner
    host: str
    base_image: str = "agent-sandbox:latest"
    mem_limit: str = "1g"
    nano_cpus: int = 1_000_000_000
    ttl_s: float = 1800.0
    port_start: int = 9001
    start_timeout_s: float = 30.0
    build_timeout_s: float = 300.0
    stop_grace_s: float = 5.0
    policy: SandboxPolicy = field(default_factory=SandboxPolicy)
    identity: Identity | None = None
    calls: Path | None = None
    """The folder of the files of calls that are going on."""

    observed: bool = False
    beside: Path | None = None
    """Of tools that run beside the versions in use: what they would leave in the state directory, and find there, is here instead."""

    @property
    def kept(self) -> Path:
        """Where volumes and last words of tools are."""
        return self.beside or self.state

    @property
    def origin(self) -> Origin:
        return Origin.of(self.owner.state, self.state)

    @property
    def seals(self) -> Seals:
        """Raises OSError."""
        return Seals.of(self.state)

    def labels(self, marks: Marks) -> dict[str, str]:
        """All labels of a container of ours. Raises OSError."""
        return self.seals.on_container(self.origin, marks)

    @property
    def image_labels(self) -> dict[str, str]:
        """All labels of an image of ours. Raises OSError."""
        return self.seals.on_image(self.origin)

    @property
    def user(self) -> str:
        """As the engine writes it. The image's own is not asked: the sockets of the container are this user's."""
        return f"{self.identity.uid}:{self.identity.gid}" if self.identity else f"{os.getuid()}:{os.getgid()}"
