"""The steps of a task on the host that does it."""

import asyncio
import contextlib

from temporalio import activity

from activities.heartbeats import beating
from engine.making.maker import Maker
from engine.runtimes.runtime import Progress
from engine.store.tasks import TaskTable
from toolagent.client import names
from toolagent.contracts.making_steps import (
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
from toolagent.core.failures import StoreUnavailableError

__all__ = ["MakeTool"]


class MakeTool:
    """What a step finds wrong with the task is its answer; what it raises is ours, and is tried again."""

    def __init__(self, maker: Maker, tasks: TaskTable) -> None:
        self._maker, self._tasks = maker, tasks
        self._noting: set[asyncio.Task[None]] = set()

    @activity.defn(name=names.INSPECT_TASK)
    async def inspect_task(self, step: TaskStep) -> Inspected:
        async with beating() as pulse:
            return await self._maker.inspect(step, self._told(step.task_id, pulse.say))

    @activity.defn(name=names.DIAGNOSE)
    async def diagnose(self, step: TaskStep) -> Diagnosis:
        async with beating() as pulse:
            return await self._maker.diagnose(step, self._told(step.task_id, pulse.say))

    @activity.defn(name=names.LAY_OUT)
    async def lay_out(self, step: TaskStep) -> None:
        async with beating():
            await self._maker.lay_out(step)

    @activity.defn(name=names.BUILD_CANDIDATE)
    async def build_candidate(self, step: BuildStep) -> BuildOutcome:
        async with beating() as pulse:
            return await self._maker.build(step, self._told(step.task_id, pulse.say))

    @activity.defn(name=names.VERIFY_CANDIDATE)
    async def verify_candidate(self, step: VerifyStep) -> Assessed:
        async with beating() as pulse:
            return await self._maker.verify(step, self._told(step.task_id, pulse.say))

    @activity.defn(name=names.REGISTER_CANDIDATE)
    async def register_candidate(self, step: RegisterStep) -> Registered:
        """All or nothing: a cancellation that comes in the middle comes too late."""
        async with beating():
            registering = asyncio.ensure_future(self._maker.register(step))
            try:
                return await asyncio.shield(registering)
            except asyncio.CancelledError:
                return await registering

    @activity.defn(name=names.CLEAR_TASK)
    async def clear_task(self, step: TaskStep) -> None:
        async with beating():
            await self._maker.clear(step)

    def _told(self, task_id: str, say: Progress) -> Progress:
        """Temporal is told at once, whoever follows the task when the database gets to it."""

        def tell(progress: str) -> None:
            say(progress)
            noting = asyncio.create_task(self._noted(task_id, progress), name=f"note progress of {task_id}")
            self._noting.add(noting)
            noting.add_done_callback(self._noting.discard)

        return tell

    async def _noted(self, task_id: str, progress: str) -> None:
        with contextlib.suppress(StoreUnavailableError):  # the next line comes soon
            await self._tasks.note_progress(task_id, progress)
