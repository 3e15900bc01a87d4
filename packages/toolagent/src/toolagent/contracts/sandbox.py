"""Sandboxes: what a program asks for, what the operator's policy allows, and what was enforced."""

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
    """Levels of isolation, the strongest first. `rlimits` does not stop a malicious program."""

    DOCKER = "docker"
    BUBBLEWRAP = "bubblewrap"
    RLIMITS = "rlimits"


class SandboxLimits(Contract):
    """Limits of a program. The policy sets those that are unset."""

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
        """These limits; unset ones are taken from `other`."""
        return self.model_copy(update={name: getattr(other, name) for name in type(self).model_fields if getattr(self, name) is None})


class SandboxGrant(Contract):
    """The rights of one program. Paths are patterns: `self`, `./*`, `.cache/**`."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    limits: SandboxLimits = SandboxLimits()


class Difference(Contract):
    """One right that was not granted as requested, or a demand of the policy that was not met."""

    item: str
    """`limits.memory_bytes`, `hosts`, `seccomp` …"""
    requested: JsonValue = None
    enforced: JsonValue = None
    reason: str


class SandboxAccount(Contract):
    """The sandbox of one run."""

    level: SandboxLevel
    requested: SandboxGrant
    enforced: SandboxGrant
    differences: tuple[Difference, ...] = ()


_MIB = 1024 * 1024


class SandboxPolicy(Contract):
    """The operator's policy for all sandboxes of a host. Nothing is granted beyond it."""

    at_least: SandboxLevel | None = None
    """The weakest allowed level. If the host cannot provide it, nothing runs."""
    hosts: tuple[HostPattern, ...] = ("*",)
    """Hosts that tools may ask for."""
    private_hosts: tuple[HostPattern, ...] = ()
    """Hosts that tools may reach although their addresses are not public."""
    read: tuple[str, ...] = ()
    """Folders outside a tool's own that tools may ask to read."""
    write: tuple[str, ...] = ()
    """Folders outside a tool's own that tools may ask to write."""
    environment: tuple[EnvironmentName, ...] = ("TZ",)
    """Environment variables of the service that tools may ask for."""
    containers: tuple[str, ...] = ()
    """Names of existing containers that docker tools may use; `*` stands for any text."""
    gpus: Annotated[int, Field(ge=-1)] = -1
    """The most GPUs for one container; -1: all of them."""
    vulnerable_dependencies: Literal["warn", "refuse", "ignore"] = "ignore"
    """Treatment of Python packages with known vulnerabilities: `warn` checks after the installation."""
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
    """Limits of tools that set none."""
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
    """The highest limits that tools may set."""
