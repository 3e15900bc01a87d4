"""What one attempt at a step knows of those before it, and tells those after it. Temporal's activities are such turns."""

from datetime import timedelta
from typing import Literal, Protocol

__all__ = ["Again", "Interrupted", "Turn"]


class Turn(Protocol):
    """One attempt. What is `said` people see; the rest the next attempt reads."""

    workflow_id: str
    run_id: str

    @property
    def tries(self) -> int:
        """How many attempts before this one were lost, or failed for a reason of ours."""
        ...

    @property
    def earlier_s(self) -> float:
        """Seconds that the tool has had in earlier attempts."""
        ...

    @property
    def is_call_cancelled(self) -> bool:
        """Once it is cancelled: whether somebody cancelled the call. A worker that stops or a time-out ends this attempt, not the call."""
        ...

    def say(self, progress: str) -> None:
        """What is being done now, in a few words."""
        ...

    def sending(self) -> None:
        """The tool is asked, once more."""
        ...

    def not_sent(self) -> None:
        """It was not reached after all."""
        ...

    def only_waited(self) -> None:
        """This attempt ends in good order, and is none that was tried."""
        ...

    def beat(self) -> None:
        """Everything is told at once from now on."""
        ...


class Again(Exception):
    """Another attempt is to be made, after this pause; None: whenever the next one is due."""

    def __init__(self, kind: Literal["no_slot", "connection_lost"], message: str, pause: timedelta | None = None) -> None:
        super().__init__(message)
        self.kind, self.pause = kind, pause


class Interrupted(Exception):
    """The attempt was ended from outside; the call was not cancelled."""
