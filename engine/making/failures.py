"""Why a project gave no tools, or fewer than it has, in words that a person can act on."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass


class BuildFailed(Exception):
    """The plan gives no tool; `told` is the output on the way. The coding agent may do better."""

    def __init__(self, message: str, told: str = "") -> None:
        super().__init__(message)
        self.message, self.told = message, told


@contextmanager
def failing(what: str) -> Generator[None]:
    """Turns ValueError and OSError into BuildFailed; the message begins with `what`."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise BuildFailed(f"{what}: {error}") from error


class LockFailed(BuildFailed):
    """A project's packages cannot be locked, or the project cannot be built; `told` is the end of the installer's output."""


class HostUnready(LockFailed):
    """The setup of this host is the cause: only its operator can mend it."""


class NotWanted(ValueError):
    """The project's dependencies are not available here; the message says why."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An operation (`METHOD /path`), command or tool that is left out; a task could ask for it by one of `names`."""

    operation: str
    reason: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.operation}: {self.reason}"


NOT_NAMED = "The task names others in `operations`."
