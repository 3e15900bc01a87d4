"""What one attempt at a step knows of those before it, and tells those after it."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Literal, NamedTuple

from toolagent.core.texts import well_formed


class Told(NamedTuple):
    """What each heartbeat says, in this order: the progress that people see, and what the next attempt reads.

    That is how often the tool was asked, how many seconds it has had (`spent_s`), and how many attempts ended in good order without
    having tried anything (`waits`). Without heartbeats a call is tried less often, never without end: Temporal counts the attempts.
    """

    progress: str = ""
    sends: int = 0
    spent_s: float = 0.0
    waits: int = 0


class Turn:
    """Attempt `number`, from 1, of a workflow's step. Nothing is told before `beat`."""

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
        """How many attempts before this one were lost, or failed for a reason of ours."""
        return max(0, self._number - 1 - self._told.waits)

    @property
    def earlier_s(self) -> float:
        """Seconds that the tool has had in earlier attempts."""
        return self._told.spent_s

    @property
    def is_call_cancelled(self) -> bool:
        """Once it is cancelled: whether somebody cancelled the call. A worker that stops or a time-out ends this attempt, not the call."""
        return self._is_call_cancelled()

    def follow(self, begun: "Turn") -> None:
        """From now on what another turn knows is told, which began the call before this one."""
        self._begun = begun

    def take_over(self, begun: "Turn") -> None:
        """What another turn knows is this one's: it goes on with the call."""
        self._begun, self._told = None, begun.known._replace(progress="", waits=self._told.waits)

    def say(self, progress: str) -> None:
        """What is being done now, in a few words."""
        self._told = self._told._replace(progress=well_formed(progress))
        self._tell()

    def sending(self) -> None:
        """The tool is asked, once more."""
        self._told = self._told._replace(sends=self._told.sends + 1)
        self._sent_at = time.monotonic()
        self._tell()

    def not_sent(self) -> None:
        """It was not reached after all."""
        self._sent_at = None

    def only_waited(self) -> None:
        """This attempt ends in good order, and is none that was tried."""
        self._told = self._told._replace(waits=self._told.waits + 1)
        self.beat()

    def beat(self) -> None:
        """From now on everything is told at once."""
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
    """Another attempt is to be made, after this pause; None: whenever the next one is due."""

    def __init__(self, kind: Literal["no_slot", "connection_lost"], message: str, pause: timedelta | None = None) -> None:
        super().__init__(message)
        self.kind, self.pause = kind, pause


class Interrupted(Exception):
    """The attempt was ended from outside; the call was not cancelled."""
