"""What a sandboxed program asks for, what the operator's policy lets it have, and what was enforced."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue

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

    memory_bytes: Annotated[int | None, Field(gt=0)] = None
    cpus: Annotated[float | None, Field(gt=0, description="Cores; 0.5 is half of one.")] = None
    processes: Annotated[int | None, Field(gt=0, description="Processes and threads at once.")] = None
    open_files: Annotated[int | None, Field(gt=0)] = None
    file_bytes: Annotated[int | None, Field(gt=0, description="Size of one file.")] = None
    disk_bytes: Annotated[int | None, Field(gt=0, description="Size of all temporary files together.")] = None
    output_bytes: Annotated[int | None, Field(gt=0, description="Bytes on stdout, and as many on stderr.")] = None
    wall_s: Annotated[float | None, Field(gt=0, alias="wallSeconds", description="Seconds from launch to end.")] = None

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

    item: Annotated[str, Field(description="`limits.memory_bytes`, `hosts`, `seccomp` …")]
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

    at_least: Annotated[SandboxLevel | None, Field(description="The weakest level that may be used; without it nothing runs.")] = None
    hosts: Annotated[tuple[HostPattern, ...], Field(description="Hosts that tools may be allowed.")] = ("*",)
    private_hosts: Annotated[
        tuple[HostPattern, ...], Field(description="Hosts that may be reached although their addresses are not public.")
    ] = ()
    read: Annotated[tuple[str, ...], Field(description="Folders outside a tool's own that tools may ask to read.")] = ()
    write: Annotated[tuple[str, ...], Field(description="Folders outside a tool's own that tools may ask to write.")] = ()
    environment: Annotated[tuple[EnvironmentName, ...], Field(description="Names of our environment that tools may ask for.")] = ("TZ",)
    containers: Annotated[
        tuple[str, ...], Field(description="Names of containers that others made and that docker tools may be; `*` stands for any text.")
    ] = ()
    gpus: Annotated[int, Field(ge=-1, description="How many GPUs a container may have at most; -1: all of them.")] = -1
    vulnerable_dependencies: Annotated[
        Literal["warn", "refuse", "ignore"],
        Field(description="What to do about Python packages that are known to be vulnerable: `warn` looks after the installation."),
    ] = "ignore"
    defaults: Annotated[SandboxLimits, Field(description="For what a tool does not say.")] = SandboxLimits(
        memory_bytes=1024 * _MIB, cpus=1, processes=128, open_files=1024, file_bytes=256 * _MIB, disk_bytes=512 * _MIB,
        output_bytes=10 * _MIB, wall_s=60,
    )  # fmt: skip
    ceilings: Annotated[SandboxLimits, Field(description="At most this, whatever a tool says.")] = SandboxLimits(
        memory_bytes=8192 * _MIB, cpus=8, processes=1024, open_files=8192, file_bytes=4096 * _MIB, disk_bytes=8192 * _MIB,
        output_bytes=64 * _MIB, wall_s=86_400,
    )  # fmt: skip
