"""Steps that fail for a reason that nobody foresaw: they are tried again, and not without end."""

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from temporalio import activity
from temporalio.exceptions import ApplicationError

from engine.calls.endings import told_of
from toolagent.core.failures import StoreUnavailableError
from toolagent.validation.checkers import CheckersBusyError

MOST_FAULTS = 10
"""Within a minute, as the pauses between them get longer."""

_FOLLOWED = 1_000
_EXPECTED = (ApplicationError, StoreUnavailableError, CheckersBusyError)
"""What says itself whether another attempt may help, and what is waited for without end."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """How often a step has failed for such a reason, and what the last one was."""

    count: int = 0
    told: str = ""


_NONE = Earlier()


class Faults:
    """Counted per step in memory: Temporal's number of attempts counts those too that only waited, for the database or `waits_for`."""

    def __init__(self, most: int = MOST_FAULTS, waits_for: tuple[type[Exception], ...] = ()) -> None:
        self._most = most
        self._expected = (*_EXPECTED, *waits_for)
        self._steps: OrderedDict[str, Earlier] = OrderedDict()

    @contextmanager
    def bounded(self, step: str = "") -> Generator[Earlier]:
        """Gives the faults before this attempt; the last one is raised as one that Temporal does not try again.

        `step` names a local activity whose `local_retry_threshold` is short: Temporal counts it as another one after each timer.
        """
        info = activity.info()
        step = step or f"{info.workflow_run_id} {info.activity_id} {info.activity_type}"
        try:
            yield self._steps.get(step, _NONE)
        except self._expected:
            raise
        except Exception as error:
            count = self._steps.pop(step, _NONE).count + 1
            if count >= self._most:
                activity.logger.error("A step failed for a reason of ours, for the last time", exc_info=error)
                message = f"The step {info.activity_type} failed {count} times for a reason of ours: {told_of(error)}"
                raise ApplicationError(message, type=type(error).__name__, non_retryable=True) from error
            self._steps[step] = Earlier(count, told_of(error))
            if len(self._steps) > _FOLLOWED:
                self._steps.popitem(last=False)
            raise
        self._steps.pop(step, None)
