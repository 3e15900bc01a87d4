"""The description of one sandboxed run, and the interface of sandbox levels."""

import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from toolagent.contracts.sandbox import Difference, SandboxLevel, SandboxLimits


class LevelUnavailable(Exception):
    """A level of the sandbox does not work on this machine; the message says why."""


PYTHON = str(Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))
"""The interpreter that every sandbox sees."""

MOST_LEVELS = 128
"""The deepest folder whose files are counted: a run with deeper ones is ended."""

UNCOUNTED = f"folders that cannot be counted: more than {MOST_LEVELS} in each other, or closed to the worker"


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the host and its place for the program. Writable ones are handed to the program's user.

    `is_machines`: a path of the machine that the policy grants. Its owner stays, and links on the way are not followed.
    `is_handed_over`: handed to the program's user with its content, although it is mounted read-only: sockets.
    """

    source: Path
    target: Path
    writable: bool = False
    is_machines: bool = False
    is_handed_over: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """What a program sees: the system, a private /tmp, these mounts and variables, and nothing else. It has no network.

    `name` is unique on this host and valid for a cgroup and a container: lower case letters, digits, `-`. `folder` is the working
    directory, as the program sees it. All `limits` are set. `ports` are the loopback ports that the program needs, for levels without
    a loopback of their own.
    """

    name: str
    folder: Path
    limits: SandboxLimits
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """The limits that a run reached, as seen from outside.

    `disk_hidden`: some folders could not be counted; `disk_full` is set too. `was_set_up`: False if the sandbox failed before it
    executed the program. The program itself cannot influence this field.
    """

    out_of_memory: bool = False
    disk_full: bool = False
    disk_hidden: bool = False
    processes_refused: bool = False
    was_set_up: bool = True

    @property
    def beyond(self) -> str:
        """The exceeded limit as the predicate of a sentence, or "". If there are several, the first caused the others."""
        said = {
            "took more memory than it may": self.out_of_memory,
            f"has {UNCOUNTED}": self.disk_hidden,
            "took more disk than it may": self.disk_full,
            "took more processes than it may": self.processes_refused,
        }
        return next((text for text, is_so in said.items() if is_so), "")


class Prepared(Protocol):
    """A run ready to be launched as `argv` with `environment`. `begin` is called at most once, `end` exactly once.

    `ends_with_us`: the kernel ends it with the thread that launched it.
    """

    argv: Sequence[str]
    ends_with_us: bool
    environment: Mapping[str, str]
    pass_fds: Sequence[int]

    async def begin(self, pid: int) -> None:
        """Put the launched process under its limits and let it run. Raises OSError if that fails."""
        ...

    def terminate(self) -> None:
        """Ask the payload to end, like SIGTERM. An ended payload is no error."""
        ...

    async def end(self) -> Ending:
        """Called once the process has ended, or did not start: end and remove all remains of the run."""
        ...


class Level(Protocol):
    """A way to isolate programs. Without its own network, programs listen on the machine's loopback."""

    level: SandboxLevel
    has_own_network: bool

    async def prepare(self, argv: Sequence[str], box: Box) -> Prepared:
        """Raises LevelUnavailable."""
        ...

    def differences(self) -> tuple[Difference, ...]:
        """What this level cannot enforce on this machine, for any run."""
        ...

    async def sweep(self) -> tuple[str, ...]:
        """Remove the remains of dead workers' runs; returns their names."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A box and command with network access added. `refusals` returns those so far, as `host:port: reason`."""

    box: Box
    argv: Sequence[str]
    refusals: Callable[[], tuple[str, ...]] = lambda: ()


Network: TypeAlias = Callable[[Box, Sequence[str], Sequence[str]], AbstractAsyncContextManager[Opened]]
"""Opens network access for a box, its command, and patterns of allowed hosts; it stays open during the block."""


@asynccontextmanager
async def no_network(box: Box, argv: Sequence[str], _hosts: Sequence[str]) -> AsyncGenerator[Opened]:
    yield Opened(box, argv)
