"""Limits of a container, in the engine's terms."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.runtimes.docker_engine.engine import Document
from toolagent.contracts.sandbox import SandboxLimits, SandboxPolicy

_SIZE = re.compile(r"^(\d+)\s*([kmgt]?)i?b?$", re.IGNORECASE)
_UNITS: Mapping[str, int] = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NANO = 1_000_000_000
_SHARED_MEMORY = 64 * 1024 * 1024
_LEAST_CPU = _NANO // 100
_LEAST_MEMORY = 6 * 1024 * 1024
"""The least that Docker accepts."""


def bytes_of(size: str) -> int:
    """`1g` in bytes. Raises ValueError."""
    found = _SIZE.match(size.strip())
    if found is None:
        raise ValueError(f"{size!r} is not a size: write 512m or 2g")
    return int(found[1]) * _UNITS[found[2].lower()]


def asked_limits(mem_limit: str | None, nano_cpus: int | None, processes: int | None = None) -> SandboxLimits:
    """The limits that a source, a request or the settings name. Raises ValueError."""
    return SandboxLimits(
        memory_bytes=bytes_of(mem_limit) if mem_limit else None, cpus=nano_cpus / _NANO if nano_cpus else None, processes=processes
    )


@dataclass(frozen=True, slots=True)
class ContainerLimits:
    """`scratch_bytes` is for all files in /tmp together, which count as memory too. `gpus`: -1 is all, 0 none.

    `beyond`: the number of cores asked for, if the machine has fewer.
    """

    memory_bytes: int
    nano_cpus: int
    processes: int
    scratch_bytes: int
    open_files: int
    file_bytes: int | None = None
    gpus: int = 0
    beyond: float | None = None

    @classmethod
    def within(cls, asked: SandboxLimits, ceilings: SandboxLimits, processors: int, gpus: int = 0) -> "ContainerLimits":
        """The limits asked for, capped by the ceilings and the machine's processors. All fields of `asked` are set."""
        least = {name: _lesser(getattr(asked, name), getattr(ceilings, name)) for name in SandboxLimits.model_fields}
        cpus = least["cpus"] or 1
        return cls(
            memory_bytes=max(int(least["memory_bytes"] or 0), _LEAST_MEMORY),
            nano_cpus=max(int(min(cpus, processors) * _NANO), _LEAST_CPU),
            processes=int(least["processes"] or 1),
            scratch_bytes=int(least["disk_bytes"] or 0),
            open_files=int(least["open_files"] or 0),
            file_bytes=int(least["file_bytes"]) if least["file_bytes"] else None,
            gpus=gpus,
            beyond=cpus if cpus > processors else None,
        )

    def told(self, others: SandboxLimits) -> SandboxLimits:
        """These as SandboxLimits; limits that the engine does not know are taken from `others`."""
        ours = SandboxLimits(
            memory_bytes=self.memory_bytes,
            cpus=self.nano_cpus / _NANO,
            processes=self.processes,
            disk_bytes=self.scratch_bytes,
            open_files=self.open_files,
            file_bytes=self.file_bytes,
        )
        return ours.or_else(others)

    @property
    def host_config(self) -> Document:
        files = [{"Name": "nofile", "Soft": self.open_files, "Hard": self.open_files}, {"Name": "core", "Soft": 0, "Hard": 0}]
        if self.file_bytes is not None:
            files.append({"Name": "fsize", "Soft": self.file_bytes, "Hard": self.file_bytes})
        config: Document = {
            "Memory": self.memory_bytes,
            "MemorySwap": self.memory_bytes,
            "NanoCpus": self.nano_cpus,
            "PidsLimit": self.processes,
            "ShmSize": min(_SHARED_MEMORY, self.scratch_bytes or _SHARED_MEMORY),
            "Ulimits": files,
        }
        if self.gpus:
            config["DeviceRequests"] = [{"Count": self.gpus, "Capabilities": [["gpu"]]}]
        return config

    def scratch(self, *folders: str) -> Document:
        """Folders in memory (tmpfs) that every user in the container may write to."""
        return {folder: f"rw,nosuid,nodev,mode=1777,size={self.scratch_bytes}" for folder in folders}


def gpus_within(policy: SandboxPolicy, wanted: int) -> int:
    """The number of GPUs wanted, capped by the policy; -1 is all."""
    # "All" is more than any machine has.
    wanted, most = (1 << 30 if number < 0 else number for number in (wanted, policy.gpus))
    return -1 if min(wanted, most) == 1 << 30 else min(wanted, most)


def _lesser(one: float | None, other: float | None) -> float | None:
    return min((value for value in (one, other) if value is not None), default=None)
