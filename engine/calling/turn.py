"""What an attempt at a step knows of earlier attempts, and tells later ones."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Literal, NamedTuple

from toolagent.core.texts import well_formed


class Told(NamedTuple):
    """Fields of a heartbeat, in order: progress for users, then state for the next attempt.

    The state: the number of requests (`sends`), the seconds that the tool has used (`spent_s`), and the attempts that only waited
    (`waits`). If heartbeats are lost, a call gets fewer attempts, never more: Temporal counts them.
    """

    progress: str = ""
    sends: int = 0
    spent_s: float = 0.0
    waits: int = 0


class Turn:
    """Attempt `number`, from 1, of a step. It sends no heartbeat before `beat`."""

    def __init__(
        self,
        number: int,
        earlier: Told,
        tell: Callable[[Told], None],
        is_call_cancelled: Callable[[], bool],
        workflow_id: str = "",
        run_id: str = "",
    ) -> None:
        self.workflow_id, self.run_id = workflow_id, run_id
        self._number, self._told, self._listener, self._is_call_cancelled = number, earlier._replace(progress=""), tell, is_call_cancelled
        self._is_heard = False
        self._sent_at: float | None = None
        self._begun: Turn | None = None

    @property
    def tries(self) -> int:
        """Earlier attempts that were lost, or failed for a reason of ours."""
        return max(0, self._number - 1 - self._told.waits)

    @property
    def earlier_s(self) -> float:
        """Seconds that the tool has used in earlier attempts."""
        return self._told.spent_s

    @property
    def is_call_cancelled(self) -> bool:
        """After a cancellation: whether the call was cancelled. A stopping worker or a time-out ends only the attempt."""
        return self._is_call_cancelled()

    def follow(self, begun: "Turn") -> None:
        """Reports the state of another turn from now on, which began the call before this one."""
        self._begun = begun

    def take_over(self, begun: "Turn") -> None:
        """Takes over the state of another turn, to continue its call."""
        self._begun, self._told = None, begun.known._replace(progress="", waits=self._told.waits)

    def say(self, progress: str) -> None:
        """Reports the current progress, in a few words."""
        self._told = self._told._replace(progress=well_formed(progress))
        self._tell()

    def sending(self) -> None:
        """Counts a request to the tool."""
        self._told = self._told._replace(sends=self._told.sends + 1)
        self._sent_at = time.monotonic()
        self._tell()

    def not_sent(self) -> None:
        """The request did not reach the tool."""
        self._sent_at = None

    def only_waited(self) -> None:
        """This attempt does not count as a try."""
        self._told = self._told._replace(waits=self._told.waits + 1)
        self.beat()

    def beat(self) -> None:
        """Sends heartbeats from now on, one for each change."""
        self._is_heard = True
        self._tell()

    def _tell(self) -> None:
        if self._is_heard:
            self._listener((self._begun or self).known._replace(waits=self._told.waits))

    @property
    def known(self) -> Told:
        now_s = time.monotonic() - self._sent_at if self._sent_at is not None else 0.0
        return self._told._replace(spent_s=self._told.spent_s + now_s)


class Again(Exception):
    """Another attempt is needed, after this pause; None: after Temporal's own pause."""

    def __init__(self, kind: Literal["no_slot", "connection_lost"], message: str, pause: timedelta | None = None) -> None:
        super().__init__(message)
        self.kind, self.pause = kind, pause


class Interrupted(Exception):
    """The attempt was ended from outside, but the call was not cancelled."""
