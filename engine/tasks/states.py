"""Records a task: its slot, its host, its stages and its end."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import structlog

from engine.store.hosts import HostTable
from engine.store.tasks import Ending, TaskTable
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import TaskConflictError, UnknownTaskError
from toolagent.core.task_requests import subject_of
from toolagent_service.agents.coding_log import shown_text
from toolagent_service.contracts.making_steps import EndStep, HostStep, Slot, StageStep
from toolagent_service.making.task_views import begun

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_LONGEST_REASON = 500
_ELSEWHERE = timedelta(seconds=0.2)
"""Pause until another host may take the task."""


_ENDINGS: dict[TaskState, Ending] = {
    TaskState.COMPLETED: TaskState.COMPLETED,
    TaskState.FAILED: TaskState.FAILED,
    TaskState.CANCELLED: TaskState.CANCELLED,
}


class TaskWaits(Exception):
    """The task may not begin yet. Ask again after `pause`."""

    def __init__(self, why: str, pause: timedelta) -> None:
        super().__init__(why)
        self.pause = pause


class TaskStates:
    """Every operation is keyed by the task, and idempotent. At most `most` tasks run at once, on all hosts together.

    No task begins here unless `is_open`: a draining host takes none.
    """

    def __init__(self, tasks: TaskTable, hosts: HostTable, host: str, *, most: int = 2, is_open: Callable[[], bool] = lambda: True) -> None:
        self._tasks, self._hosts, self._host, self._most, self._is_open = tasks, hosts, host, most, is_open

    async def begin(self, request: MakeRequest, *, is_first: bool) -> Slot:
        """Permits the task to begin, on this host. Raises TaskWaits, TaskConflictError, TaskEndedError."""
        if not self._is_open():
            raise TaskWaits(f"The host {self._host!r} drains.", _ELSEWHERE)
        if not await self._claimed(request, is_first=is_first):
            raise TaskWaits(f"{self._most} tasks run already.", await self._tasks.pause(request.task_id))
        _log.info("task_began", task_id=request.task_id, type=request.spec.type, tool_id=subject_of(request.spec), host=self._host)
        return Slot(host=self._host)

    async def host_of(self, step: HostStep) -> Slot:
        """The same host while it is alive or no other is; else a living one. Records a move of the task."""
        alive = await self._hosts.standings()
        if step.host in alive or not alive:
            return Slot(host=step.host)
        accepting = [host for host, standing in alive.items() if not standing.drains] or [*alive]
        host = self._host if self._host in accepting else min(accepting)
        if step.moves:
            await self._tasks.move(step.task_id, step.host, host)
        return Slot(host=host)

    async def enter_stage(self, step: StageStep) -> None:
        """Raises TaskConflictError, TaskEndedError."""
        await self._tasks.enter_stage(step.request.task_id, step.stage, "done" if step.went_well else "failed")

    async def end(self, step: EndStep) -> None:
        request = step.request
        # On a conflict the id belongs to another request, whose own workflow ends it.
        with suppress(TaskConflictError):
            await self._tasks.create(begun(request, datetime.now(UTC)))
            await self._tasks.settle(
                request.task_id, _ENDINGS[step.status], step.reason, tool_ids=step.tool_ids, evidence=step.evidence, tried=step.tried
            )
            reason = shown_text(step.reason, _LONGEST_REASON)
            _log.info("task_ended", task_id=request.task_id, status=step.status.value, tool_ids=step.tool_ids, reason=reason)

    async def _claimed(self, request: MakeRequest, *, is_first: bool) -> bool:
        """Writes the row only at the first attempt: a waiting task asks often."""
        if not is_first:
            with suppress(UnknownTaskError):
                return await self._tasks.claim_slot(request.task_id, self._most, self._host)
        # A workflow of another agent may start a task without the API, so without a row.
        await self._tasks.create(begun(request, datetime.now(UTC)))
        return await self._tasks.claim_slot(request.task_id, self._most, self._host)
