"""Steps that fail for a reason that nobody foresaw: they are tried again, and not without end."""

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

from temporalio import activity
from temporalio.exceptions import ApplicationError

from toolagent.core.failures import StoreUnavailableError
from toolagent.core.masking import masked_text
from toolagent.validation.checkers import CheckersBusyError

__all__ = ["MOST_FAULTS", "Faults", "told_of"]

MOST_FAULTS = 10
"""Within a minute, as the pauses between them get longer."""

_FOLLOWED = 1_000
_TOLD = 500
"""Characters of what an unforeseen error says."""

_EXPECTED = (ApplicationError, StoreUnavailableError, CheckersBusyError)
"""What says itself whether another attempt may help, and what is waited for without end."""


class Faults:
    """Counted per step in memory: Temporal's number of attempts counts those too that only waited for the database."""

    def __init__(self, most: int = MOST_FAULTS) -> None:
        self._most = most
        self._counts: OrderedDict[str, int] = OrderedDict()

    @contextmanager
    def bounded(self) -> Generator[None]:
        """The last fault is raised as one that Temporal does not try again."""
        info = activity.info()
        step = f"{info.workflow_run_id} {info.activity_id} {info.activity_type}"
        try:
            yield
        except _EXPECTED:
            raise
        except Exception as error:
            count = self._counts.pop(step, 0) + 1
            if count >= self._most:
                activity.logger.error("A step failed for a reason of ours, for the last time", exc_info=error)
                message = f"The step {info.activity_type} failed {count} times for a reason of ours: {told_of(error)}"
                raise ApplicationError(message, type=type(error).__name__, non_retryable=True) from error
            self._counts[step] = count
            if len(self._counts) > _FOLLOWED:
                self._counts.popitem(last=False)
            raise
        self._counts.pop(step, None)


def told_of(error: Exception) -> str:
    """What anybody may read of it."""
    said = masked_text(str(error)[:_TOLD])
    return f"{type(error).__name__}{said and f': {said}'}"
