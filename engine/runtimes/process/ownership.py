"""The owner of a process: a mark in its environment, which its children inherit."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

MARK = "TOOL_AGENT_OWNER"
_SAME_START_S = 2.0


@dataclass(frozen=True, slots=True)
class Owner:
    """A worker process of a state directory. `created` is its start, in seconds since 1970."""

    state: str
    pid: int
    created: float

    @classmethod
    def of_this_process(cls, state: Path) -> Self:
        return cls(cls.state_of(state), (me := psutil.Process()).pid, me.create_time())

    @staticmethod
    def state_of(state: Path) -> str:
        """A short name of a state directory, the same in every process."""
        return hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:16]

    @classmethod
    def read(cls, mark: str) -> Self | None:
        """The owner named by a mark; None if the mark is not ours."""
        state, _, rest = mark.partition(":")
        pid, _, created = rest.partition(":")
        try:
            return cls(state, int(pid), float(created))
        except ValueError:
            return None

    @property
    def mark(self) -> str:
        return f"{self.state}:{self.pid}:{self.created:.2f}"

    @property
    def environment(self) -> dict[str, str]:
        """The variable by which a child is found again."""
        return {MARK: self.mark}

    def is_alive(self) -> bool:
        """Whether that worker still runs, rather than another process with its pid."""
        try:
            worker = psutil.Process(self.pid)
            return worker.status() != psutil.STATUS_ZOMBIE and abs(worker.create_time() - self.created) < _SAME_START_S
        except psutil.NoSuchProcess:
            return False
