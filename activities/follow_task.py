"""What is recorded of a task: its turn to run, its stages and its end."""

from collections.abc import Generator
from contextlib import contextmanager

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.faults import Faults
from engine.tasks.states import TaskStates, TaskWaits
from toolagent.client import names
from toolagent.contracts.making import MakeRequest
from toolagent.core.failures import TaskConflictError, TaskEndedError
from toolagent_service import step_names
from toolagent_service.contracts.making_steps import EndStep, HostStep, Slot, StageStep


class FollowTask:
    """Every step is keyed by the task and may be repeated."""

    def __init__(self, states: TaskStates) -> None:
        self._states = states
        self._faults = Faults()

    @activity.defn(name=step_names.AWAIT_SLOT)
    async def await_slot(self, request: MakeRequest) -> Slot:
        """Leave for the task to begin, on this host. Fails with `no_slot` while other tasks come first; Temporal asks again."""
        with self._faults.bounded(), _final():
            try:
                return await self._states.begin(request, is_first=activity.info().attempt == 1)
            except TaskWaits as caught:
                waits = caught
        # Outside of the block: an attempt that only waits ends a row of faults.
        raise ApplicationError(str(waits), type=names.NO_SLOT, next_retry_delay=waits.pause, category=ApplicationErrorCategory.BENIGN)

    @activity.defn(name=step_names.FIND_HOST)
    async def find_host(self, step: HostStep) -> Slot:
        with self._faults.bounded():
            return await self._states.host_of(step)

    @activity.defn(name=step_names.ENTER_STAGE)
    async def enter_stage(self, step: StageStep) -> None:
        with self._faults.bounded(), _final():
            await self._states.enter_stage(step)

    @activity.defn(name=step_names.END_TASK)
    async def end_task(self, step: EndStep) -> None:
        with self._faults.bounded():
            await self._states.end(step)


@contextmanager
def _final() -> Generator[None]:
    """Errors that another attempt does not change."""
    try:
        yield
    except (TaskConflictError, TaskEndedError) as error:
        raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from error
