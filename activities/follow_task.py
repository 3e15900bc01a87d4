"""Records a task: its slot, its stages and its end."""

from collections.abc import Generator
from contextlib import contextmanager

from temporalio import activity

from activities.failures import expected, final
from activities.faults import Faults
from engine.tasks.states import TaskStates, TaskWaits
from toolagent.client import names
from toolagent.contracts.making import MakeRequest
from toolagent.core.failures import TaskConflictError, TaskEndedError
from toolagent_service import step_names
from toolagent_service.contracts.making_steps import EndStep, HostStep, Slot, StageStep


class FollowTask:
    """Every step is keyed by the task, so repeating it is harmless."""

    def __init__(self, states: TaskStates) -> None:
        self._states = states
        self._faults = Faults()

    @activity.defn(name=step_names.AWAIT_SLOT)
    async def await_slot(self, request: MakeRequest) -> Slot:
        """Permits the task to begin, on this host. Fails with `no_slot` while other tasks come first; Temporal retries."""
        with self._faults.bounded(), _final():
            try:
                return await self._states.begin(request, is_first=activity.info().attempt == 1)
            except TaskWaits as caught:
                waits = caught
        # Outside the block, so that an attempt that only waited resets the count of faults.
        raise expected(str(waits), names.NO_SLOT, pause=waits.pause)

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
    """Errors that another attempt would meet too."""
    try:
        yield
    except (TaskConflictError, TaskEndedError) as error:
        raise final(str(error), type(error).__name__) from error
