"""Slots of a worker that takes no work while its host drains."""

import asyncio
from contextlib import suppress

from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

from engine.calling.intake import Intake

_NO_MATTER = FixedSizeSlotSupplier(1)
"""A worker of activities alone has no workflows."""


class IntakeSlots(CustomSlotSupplier):
    """A fixed number of slots. A poll begins only while the intake is open; a poll that has begun may still bring work.

    Shutting the worker down instead would cut off its calls after a grace, and it could not be started again.
    """

    def __init__(self, slots: int, intake: Intake) -> None:
        self._free, self._intake = asyncio.Semaphore(slots), intake
        self._loop = asyncio.get_running_loop()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        del ctx  # all polls of the queue are equal
        while True:
            await self._intake.opened()
            await self._free.acquire()
            if self._intake.is_open:
                return SlotPermit()
            self._free.release()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Only called for activities of workflows on the same queue, of which there are none."""
        del ctx
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None: ...

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Called by a thread of Temporal."""
        del ctx
        with suppress(RuntimeError):  # the loop is closed, so no poll waits
            self._loop.call_soon_threadsafe(self._free.release)


def tuner_of(slots: int, intake: Intake) -> WorkerTuner:
    return WorkerTuner.create_composite(
        workflow_supplier=_NO_MATTER,
        activity_supplier=IntakeSlots(slots, intake),
        local_activity_supplier=_NO_MATTER,
        nexus_supplier=_NO_MATTER,
    )
