"""What is written down of a task: its turn to run, its stages and its end."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.faults import Faults
from engine.store.hosts import HostTable
from engine.store.tasks import Ending, TaskTable
from toolagent.client import names
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import TaskConflictError, TaskEndedError, UnknownTaskError
from toolagent.core.task_requests import subject_of
from toolagent_service import step_names
from toolagent_service.agents.coding_log import shown_text
from toolagent_service.contracts.making_steps import EndStep, HostStep, Slot, StageStep
from toolagent_service.making.task_views import begun

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_LONGEST_REASON = 500
_ENDINGS: dict[TaskState, Ending] = {
    TaskState.COMPLETED: TaskState.COMPLETED,
    TaskState.FAILED: TaskState.FAILED,
    TaskState.CANCELLED: TaskState.CANCELLED,
}


class FollowTask:
    """Every step is keyed by the task and may be repeated. `most` tasks run at once, on all hosts together."""

    def __init__(self, tasks: TaskTable, hosts: HostTable, host: str, *, most: int = 2) -> None:
        self._tasks, self._hosts, self._host, self._most = tasks, hosts, host, most
        self._faults = Faults()

    @activity.defn(name=step_names.AWAIT_SLOT)
    async def await_slot(self, request: MakeRequest) -> Slot:
        """Leave for the task to begin, on this host. Fails with `no_slot` while others have the better claim; Temporal asks again."""
        with self._faults.bounded(), _final():
            granted = await self._claimed(request, is_first=activity.info().attempt == 1)
        if not granted:
            message, pause = f"{self._most} tasks run already.", await self._tasks.pause(request.task_id)
            raise ApplicationError(message, type=names.NO_SLOT, next_retry_delay=pause, category=ApplicationErrorCategory.BENIGN)
        _log.info("task_began", task_id=request.task_id, type=request.spec.type, tool_id=subject_of(request.spec), host=self._host)
        return Slot(host=self._host)

    @activity.defn(name=step_names.FIND_HOST)
    async def find_host(self, step: HostStep) -> Slot:
        """The same host while it is alive, or no other is; else one that is, and the task is there from now on, if it moves."""
        with self._faults.bounded():
            alive = await self._hosts.list_alive()
            if step.host in alive or not alive:
                return Slot(host=step.host)
            host = self._host if self._host in alive else min(alive)
            if step.moves:
                await self._tasks.move(step.task_id, step.host, host)
            return Slot(host=host)

    @activity.defn(name=step_names.ENTER_STAGE)
    async def enter_stage(self, step: StageStep) -> None:
        with self._faults.bounded(), _final():
            await self._tasks.enter_stage(step.request.task_id, step.stage, "done" if step.went_well else "failed")

    @activity.defn(name=step_names.END_TASK)
    async def end_task(self, step: EndStep) -> None:
        request = step.request
        # What stands under the id may be another request, and ends by itself.
        with self._faults.bounded(), suppress(TaskConflictError):
            await self._tasks.create(begun(request, datetime.now(UTC)))
            await self._tasks.settle(
                request.task_id, _ENDINGS[step.status], step.reason, tool_ids=step.tool_ids, evidence=step.evidence, tried=step.tried
            )
            reason = shown_text(step.reason, _LONGEST_REASON)
            _log.info("task_ended", task_id=request.task_id, status=step.status.value, tool_ids=step.tool_ids, reason=reason)

    async def _claimed(self, request: MakeRequest, *, is_first: bool) -> bool:
        """Whoever waits long asks often: what is written down already is not written again."""
        if not is_first:
            with suppress(UnknownTaskError):
                return await self._tasks.claim_slot(request.task_id, self._most, self._host)
        # When nobody did before: another agent's workflow may start a task as well as we.
        await self._tasks.create(begun(request, datetime.now(UTC)))
        return await self._tasks.claim_slot(request.task_id, self._most, self._host)


@contextmanager
def _final() -> Generator[None]:
    """What another attempt does not change."""
    try:
        yield
    except (TaskConflictError, TaskEndedError) as error:
        raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from error
