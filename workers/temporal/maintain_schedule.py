"""Schedules of regular workflows, one of each in a namespace, for all hosts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import cast

import structlog
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError

from engine.upkeep.rounds import repeated
from toolagent.client import names
from toolagent.contracts.contract import Contract
from toolagent.contracts.knowhub import SyncRequest
from toolagent_service.contracts.maintenance import MaintainRequest

_LOOK_S = 60.0

_CATCH_UP = timedelta(seconds=10)
"""Temporal's minimum. Missed runs are not made up for, because the next run does all of the work."""

_PATIENCE = timedelta(seconds=10)
"""A service starts without its schedule rather than not at all."""

_LIFE = timedelta(minutes=10)
"""The time limit of a run, so that a stuck one does not block later ones."""

_log = structlog.stdlib.get_logger(__name__)


class RegularSchedule:
    """The schedule of one workflow. If hosts have different intervals, the host that started last decides."""

    def __init__(self, client: Client, schedule: str, workflow: str, argument: Contract, every_s: float) -> None:
        self._client, self.name, self._workflow, self._argument, self._every_s = client, schedule, workflow, argument, every_s

    async def upsert(self) -> None:
        """Create or update the schedule. Raises RPCError."""
        if not await self.create():
            await self._client.get_schedule_handle(self.name).update(self._changed, rpc_timeout=_PATIENCE)

    async def create(self) -> bool:
        """Create the schedule; False if it exists. Raises RPCError."""
        try:
            await self._client.create_schedule(self.name, self._wanted, rpc_timeout=_PATIENCE)
        except ScheduleAlreadyRunningError:
            return False
        return True

    async def trigger(self) -> None:
        """Run once now, or after the current run. Raises RPCError."""
        handle = self._client.get_schedule_handle(self.name)
        await handle.trigger(overlap=ScheduleOverlapPolicy.BUFFER_ONE, rpc_timeout=_PATIENCE)

    @property
    def _wanted(self) -> Schedule:
        action = ScheduleActionStartWorkflow(
            self._workflow,
            self._argument,
            id=self.name,
            task_queue=names.TASK_QUEUE,
            execution_timeout=_LIFE,
        )
        spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=self._every_s))])
        return Schedule(action, spec, policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=_CATCH_UP))

    def _changed(self, found: ScheduleUpdateInput) -> ScheduleUpdate | None:
        """The update, if there is one. A schedule that an operator has paused stays paused."""
        there, wanted = found.description.schedule, self._wanted
        if _told(there) == _told(wanted):
            return None
        return ScheduleUpdate(replace(wanted, state=there.state))


def _told(schedule: Schedule) -> tuple[object, ...]:
    """What a later version may change. The argument changes with the interval only."""
    action = cast("ScheduleActionStartWorkflow", schedule.action)
    return schedule.spec.intervals, schedule.policy, action.workflow, action.task_queue, action.execution_timeout


class MaintainSchedule(RegularSchedule):
    def __init__(self, client: Client, every_s: float) -> None:
        super().__init__(client, names.MAINTAIN_SCHEDULE, names.MAINTAIN, MaintainRequest(every_s=every_s), every_s)


class KnowHubSchedule(RegularSchedule):
    def __init__(self, client: Client, every_s: float) -> None:
        super().__init__(client, names.KNOWHUB_SCHEDULE, names.SYNC_KNOWHUB, SyncRequest(), every_s)


@asynccontextmanager
async def kept_schedule(schedule: RegularSchedule, look_s: float = _LOOK_S) -> AsyncGenerator[None]:
    """Create or update the schedule, and create it again if it is deleted, until the block ends."""
    try:
        await schedule.upsert()
    except RPCError as error:
        _log.warning("not_scheduled", schedule=schedule.name, reason=str(error), then="it is tried again")

    async def look() -> None:
        try:
            if await schedule.create():
                _log.info("scheduled", schedule=schedule.name)
        except RPCError as error:
            _log.info("not_scheduled", schedule=schedule.name, reason=str(error), then="it is tried again")

    async with repeated(look, look_s, f"schedule {schedule.name}", at_once=False):
        yield
