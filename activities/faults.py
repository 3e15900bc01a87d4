"""Retries of steps that fail for an unforeseen reason: several, but not without end."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import final
from engine.calls.endings import told_of
from toolagent.core.failures import StoreUnavailableError
from toolagent.validation.checkers import CheckersBusyError

MOST_FAULTS = 10  # they happen within about a minute, because the pauses between attempts grow
_MOST_STEPS = 1_000
_EXPECTED = (ApplicationError, StoreUnavailableError, CheckersBusyError)
"""Errors that say themselves whether Temporal retries, and outages, which a step may wait out without end."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The unforeseen failures of a step so far: their number, and the text of the last one."""

    count: int = 0
    told: str = ""


class Faults:
    """Counts per step, in memory: Temporal's number of attempts includes those that only waited for the database or for `waits_for`."""

    def __init__(self, most: int = MOST_FAULTS, waits_for: tuple[type[Exception], ...] = ()) -> None:
        self._most, self._expected = most, (*_EXPECTED, *waits_for)
        self._steps: dict[str, Earlier] = {}

    @contextmanager
    def bounded(self, step: str = "") -> Generator[Earlier]:
        """Gives the failures before this attempt. Raises the last one as an error that Temporal does not retry.

        Name the `step` of a local activity with a short `local_retry_threshold`: after each timer Temporal counts it as a new activity.
        """
        info = activity.info()
        step = step or f"{info.workflow_run_id} {info.activity_id} {info.activity_type}"
        try:
            yield self._steps.get(step, Earlier())
        except self._expected:
            raise
        except Exception as error:
            count, told = self._steps.pop(step, Earlier()).count + 1, told_of(error)
            if count >= self._most:
                activity.logger.error("A step failed for a reason of ours, for the last time", exc_info=error)
                message = f"The step {info.activity_type} failed {count} times for a reason of ours: {told}"
                raise final(message, type(error).__name__) from error
            self._steps[step] = Earlier(count, told)
            if len(self._steps) > _MOST_STEPS:
                del self._steps[next(iter(self._steps))]
            raise
        self._steps.pop(step, None)
