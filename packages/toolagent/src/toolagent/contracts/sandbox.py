"""What a sandboxed program asks for, what the operator's policy lets it have, and what was enforced."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, PositiveFloat, PositiveInt

from toolagent.contracts.contract import CAMEL_CASE, Contract
from toolagent.contracts.identifiers import EnvironmentName

__all__ = [
    "Difference",
    "HostPattern",
    "SandboxAccount",
    "SandboxGrant",
    "SandboxLevel",
    "SandboxLimits",
    "SandboxPolicy",
]

HostPattern = Annotated[
    str, Field(pattern=r"^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$", max_length=255)
]
"""A host name or address; `*.example.com` means every name below it, `*` every host. Without `:port` the ports 80 and 443."""


class SandboxLevel(StrEnum):
    """How a program is kept apart, the strongest first. `rlimits` does not hold against a program that means harm."""

    DOCKER = "docker"
    BUBBLEWRAP = "bubblewrap"
    RLIMITS = "rlimits"


class SandboxLimits(Contract):
    """What a program may use at most. What is not said is left to the policy."""

    model_config = CAMEL_CASE

    memory_bytes: PositiveInt | None = None
    cpus: PositiveFloat | None = None
    """Cores; 0.5 is half of one."""
    processes: PositiveInt | None = None
    """Processes and threads at once."""
    open_files: PositiveInt | None = None
    file_bytes: PositiveInt | None = None
    """Size of one file."""
    disk_bytes: PositiveInt | None = None
    """Size of all temporary files together."""
    output_bytes: PositiveInt | None = None
    """Bytes on stdout, and as many on stderr."""
    wall_s: Annotated[float | None, Field(gt=0, alias="wallSeconds")] = None
    """Seconds from launch to end."""

    def or_else(self, other: "SandboxLimits") -> Self:
        """These, and from `other` what is not said here."""
        return self.model_copy(update={name: getattr(other, name) for name in type(self).model_fields if getattr(self, name) is None})


class SandboxGrant(Contract):
    """What one program may see and use. Paths are patterns: `self`, `./*`, `.cache/**`."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    limits: SandboxLimits = SandboxLimits()


class Difference(Contract):
    """One thing that a program asked for, or that the policy demands, and that it did not get as asked."""

    item: str
    """`limits.memory_bytes`, `hosts`, `seccomp` …"""
    requested: JsonValue = None
    enforced: JsonValue = None
    reason: str


class SandboxAccount(Contract):
    """How one run was kept apart."""

    level: SandboxLevel
    requested: SandboxGrant
    enforced: SandboxGrant
    differences: tuple[Difference, ...] = ()


_MIB = 1024 * 1024


class SandboxPolicy(Contract):
    """The operator's word on all sandboxes of a host: nothing is granted beyond it."""

    at_least: SandboxLevel | None = None
    """The weakest level that may be used; without it nothing runs."""
    hosts: tuple[HostPattern, ...] = ("*",)
    """Hosts that tools may be allowed."""
    private_hosts: tuple[HostPattern, ...] = ()
    """Hosts that may be reached although their addresses are not public."""
    read: tuple[str, ...] = ()
    """Folders outside a tool's own that tools may ask to read."""
    write: tuple[str, ...] = ()
    """Folders outside a tool's own that tools may ask to write."""
    environment: tuple[EnvironmentName, ...] = ("TZ",)
    """Names of our environment that tools may ask for."""
    containers: tuple[str, ...] = ()
    """Names of containers that others made and that docker tools may be; `*` stands for any text."""
    gpus: Annotated[int, Field(ge=-1)] = -1
    """How many GPUs a container may have at most; -1: all of them."""
    vulnerable_dependencies: Literal["warn", "refuse", "ignore"] = "ignore"
    """What to do about Python packages that are known to be vulnerable: `warn` looks after the installation."""
    defaults: SandboxLimits = SandboxLimits(
        memory_bytes=1024 * _MIB,
        cpus=1,
        processes=128,
        open_files=1024,
        file_bytes=256 * _MIB,
        disk_bytes=512 * _MIB,
        output_bytes=10 * _MIB,
        wall_s=60,
    )
    """For what a tool does not say."""
    ceilings: SandboxLimits = SandboxLimits(
        memory_bytes=8192 * _MIB,
        cpus=8,
        processes=1024,
        open_files=8192,
        file_bytes=4096 * _MIB,
        disk_bytes=8192 * _MIB,
        output_bytes=64 * _MIB,
        wall_s=86_400,
    )
    """At most this, whatever a tool says."""
