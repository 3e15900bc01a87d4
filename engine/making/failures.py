"""Why nothing was built of a project, or less than is in it: in words that a person can act on."""

from dataclasses import dataclass


class BuildFailed(Exception):
    """The plan does not lead to a tool; `told` is what was written on the way. The coding agent may do better."""

    def __init__(self, message: str, told: str = "") -> None:
        super().__init__(message)
        self.message, self.told = message, told


class LockFailed(BuildFailed):
    """There is no lock, or no package; `told` is the end of what the installer wrote."""


class HostUnready(LockFailed):
    """How this host is set up is why: only its operator can mend it."""


class NotWanted(ValueError):
    """What the project depends on cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An operation (`METHOD /path`), command or tool that becomes none; `names` are those that a task could ask for it by."""

    operation: str
    reason: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.operation}: {self.reason}"


NOT_NAMED = "The task names others in `operations`."
