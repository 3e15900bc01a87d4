"""One sandboxed run made concrete, and what a level of the sandbox makes of it."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from toolagent.contracts.sandbox import Difference, SandboxLevel, SandboxLimits


class LevelUnavailable(Exception):
    """A level of the sandbox does not work on this machine; the message says why."""


MOST_LEVELS = 128
"""Files below so many folders are not counted: a run that has such folders is ended."""

UNCOUNTED = f"folders that cannot be counted: more than {MOST_LEVELS} in each other, or closed to the worker"


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the host and where the program sees it. What is writable is handed to the program's user.

    `is_machines`: it is none of ours, but what the policy lets tools have. Then its owner stays, and no link on the way is followed.
    `is_handed_over`: it becomes the program's user's with all in it, although the program cannot write to it: sockets.
    """

    source: Path
    target: Path
    writable: bool = False
    is_machines: bool = False
    is_handed_over: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """What a program sees: the system, a private /tmp, these mounts, this environment, and nothing else. It has no network.

    `name` is unique on this host and fit for a cgroup and a container: lower case letters, digits, `-`. `folder` is the working
    directory, as the program sees it. Of `limits` all are set. `ports` are those of the loopback that the program needs, which matters
    where it has none of its own.
    """

    name: str
    folder: Path
    limits: SandboxLimits
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """Which of its limits a run came to, as far as that is seen from outside.

    `disk_hidden`: some of its folders could not be counted, which counts as a full disk too. `was_set_up`: False where the sandbox ended
    by itself before the program was executed, which then did nothing. What a program writes or how it ends does not change it.
    """

    out_of_memory: bool = False
    disk_full: bool = False
    disk_hidden: bool = False
    processes_refused: bool = False
    was_set_up: bool = True

    @property
    def beyond(self) -> str:
        """Which limit the run exceeded, as the predicate of a sentence; "" where it exceeded none. The first is the cause of the others."""
        said = {
            "took more memory than it may": self.out_of_memory,
            f"has {UNCOUNTED}": self.disk_hidden,
            "took more disk than it may": self.disk_full,
            "took more processes than it may": self.processes_refused,
        }
        return next((text for text, is_so in said.items() if is_so), "")


class Prepared(Protocol):
    """A run that is ready to be launched as `argv` with `environment`; `begin` is called at most once, `end` exactly once.

    `ends_with_us`: the kernel ends it together with the thread that launched it.
    """

    argv: Sequence[str]
    ends_with_us: bool
    environment: Mapping[str, str]
    pass_fds: Sequence[int]

    async def begin(self, pid: int) -> None:
        """The launched process has this pid: put it under its limits and let it go. Raises OSError when that cannot be done."""
        ...

    def terminate(self) -> None:
        """Ask the payload to end, as SIGTERM does. What has ended needs no asking."""
        ...

    async def end(self) -> Ending:
        """The launched process has ended, or never started: end and remove all that is left of the run."""
        ...


class Level(Protocol):
    """One way to keep a program apart. Without a network of its own what a program listens on is on the machine's loopback."""

    level: SandboxLevel
    has_own_network: bool

    async def prepare(self, argv: Sequence[str], box: Box) -> Prepared:
        """Raises LevelUnavailable."""
        ...

    def differences(self) -> tuple[Difference, ...]:
        """What this level cannot do on this machine, whatever the run."""
        ...

    async def sweep(self) -> tuple[str, ...]:
        """Remove what runs of dead workers left; their names."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """The box and its command with the way out in them. `refusals` are those so far, as `host:port: reason`."""

    box: Box
    argv: Sequence[str]
    refusals: Callable[[], tuple[str, ...]] = lambda: ()


Network: TypeAlias = Callable[[Box, Sequence[str], Sequence[str]], AbstractAsyncContextManager[Opened]]
"""Of a box, its command, and the patterns of hosts it may reach; it is open while the block lasts."""


@asynccontextmanager
async def no_network(box: Box, argv: Sequence[str], _hosts: Sequence[str]) -> AsyncGenerator[Opened]:
    yield Opened(box, argv)
