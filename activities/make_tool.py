"""The steps of a task that makes or repairs a tool, on the host of the task."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.attempts import attempt_key
from activities.heartbeats import beating
from engine.making.maker import Maker
from engine.making.uv.outages import Outage
from engine.tasks.log import TaskLog
from engine.tasks.progress import Progress
from toolagent_service import step_names
from toolagent_service.contracts.making_steps import (
    Assessed,
    BuildOutcome,
    BuildStep,
    Diagnosis,
    Inspected,
    Registered,
    RegisterStep,
    TaskStep,
    VerifyStep,
)

_PATIENCE = 3
"""Attempts before the task is told that a service is away."""

_PAUSE = timedelta(seconds=5)
"""After the first attempt; it grows with each."""


class MakeTool:
    """A step returns what is wrong with the task. It raises errors of the service, and Temporal retries."""

    def __init__(self, maker: Maker, log: TaskLog) -> None:
        self._maker, self._log = maker, log

    @activity.defn(name=step_names.INSPECT_TASK)
    async def inspect_task(self, step: TaskStep) -> Inspected:
        async with self._told(step) as tell:
            inspected = await self._maker.inspect(step, tell)
            await self._log.inspected(step, inspected)
            return inspected

    @activity.defn(name=step_names.DIAGNOSE)
    async def diagnose(self, step: TaskStep) -> Diagnosis:
        async with self._told(step) as tell:
            found = await self._maker.diagnose(step, tell)
            if found.last_error:
                await self._log.alerted(step)
            return found

    @activity.defn(name=step_names.LAY_OUT)
    async def lay_out(self, step: TaskStep) -> None:
        async with beating():
            await self._maker.lay_out(step)

    @activity.defn(name=step_names.BUILD_CANDIDATE)
    async def build_candidate(self, step: BuildStep) -> BuildOutcome:
        async with self._told(step) as tell:
            await self._log.building(step)
            async with _waiting():
                outcome = await self._maker.build(step, tell, is_patient=_is_patient())
            await self._log.built(step, outcome)
            return outcome

    @activity.defn(name=step_names.VERIFY_CANDIDATE)
    async def verify_candidate(self, step: VerifyStep) -> Assessed:
        async with self._told(step) as tell, _waiting():
            return await self._maker.verify(step, tell, is_patient=_is_patient())

    @activity.defn(name=step_names.REGISTER_CANDIDATE)
    async def register_candidate(self, step: RegisterStep) -> Registered:
        """All or nothing: a cancellation during the registration comes too late."""
        async with beating():
            registering = asyncio.ensure_future(self._maker.register(step))
            try:
                return await asyncio.shield(registering)
            except asyncio.CancelledError:
                return await registering

    @activity.defn(name=step_names.CLEAR_TASK)
    async def clear_task(self, step: TaskStep) -> None:
        async with beating():
            await self._maker.clear(step)

    @asynccontextmanager
    async def _told(self, step: TaskStep) -> AsyncGenerator[Progress]:
        """Sends heartbeats and records the progress of the task."""
        async with beating() as turn, self._log.telling(step, attempt_key(), turn.say) as tell:
            yield tell


def _is_patient() -> bool:
    return activity.info().attempt < _PATIENCE


@asynccontextmanager
async def _waiting() -> AsyncGenerator[None]:
    """Waits longer than Temporal's first pause for a service that is away."""
    try:
        yield
    except Outage as outage:
        pause = _PAUSE * activity.info().attempt
        raise ApplicationError(str(outage), type=Outage.__name__, next_retry_delay=pause) from outage
