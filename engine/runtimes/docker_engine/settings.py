"""Settings for all containers of this host."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from engine.runtimes.docker_engine.labels import Kind, Marks, Origin
from engine.runtimes.docker_engine.seals import Seals
from engine.runtimes.process.ownership import Owner
from engine.runtimes.sandbox.identity import Identity
from toolagent.contracts.sandbox import SandboxPolicy


@dataclass(frozen=True, slots=True)
class DockerSettings:
    """`data` is the folder of projects, `state` the state directory. Times are in seconds.

    `identity` is the ordinary user of containers if the worker is root; otherwise they run as the worker's user. `observed`: record
    which hosts are asked for, also by tools that may reach none.
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
    """The folder with the files of running calls."""

    observed: bool = False
    beside: Path | None = None
    """For candidates that run beside the versions in use: replaces the state directory for volumes and logs."""

    @property
    def kept(self) -> Path:
        """The folder of the tools' volumes and last logs."""
        return self.beside or self.state

    @property
    def origin(self) -> Origin:
        return Origin.of(self.owner.state, self.state)

    @property
    def seals(self) -> Seals:
        """Raises OSError."""
        return Seals.of(self.state)

    def marks(self, kind: Kind, name: str, tool_id: str, version: str = "", source: str = "") -> Marks:
        return Marks(kind, name, tool_id, version, self.host, self.owner.mark, source)

    def labels(self, marks: Marks) -> dict[str, str]:
        """All labels of a container. Raises OSError."""
        return self.seals.on_container(self.origin, marks)

    @property
    def image_labels(self) -> dict[str, str]:
        """All labels of an image. Raises OSError."""
        return self.seals.on_image(self.origin)

    @property
    def user(self) -> str:
        """The user in the engine's form. It replaces the image's own, because this user owns the container's sockets."""
        return f"{self.identity.uid}:{self.identity.gid}" if self.identity else f"{os.getuid()}:{os.getgid()}"
