"""Slots of a worker that asks for no more work while its host drains."""

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
    """So many; a poll begins only while the intake is open. One that has begun may still bring something.

    A worker that is shut down instead would lose what it has in hand after its grace, and could not be started again.
    """

    def __init__(self, slots: int, intake: Intake) -> None:
        self._free, self._intake = asyncio.Semaphore(slots), intake
        self._loop = asyncio.get_running_loop()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        del ctx  # all polls of the queue are alike
        while True:
            await self._intake.opened()
            await self._free.acquire()
            if self._intake.is_open:
                return SlotPermit()
            self._free.release()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Only asked for what needs no poll: workflows of the same queue, of which there are none."""
        del ctx
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None: ...

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Called by a thread of Temporal's."""
        del ctx
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._free.release)


def tuner_of(slots: int, intake: Intake) -> WorkerTuner:
    return WorkerTuner.create_composite(
        workflow_supplier=_NO_MATTER,
        activity_supplier=IntakeSlots(slots, intake),
        local_activity_supplier=_NO_MATTER,
        nexus_supplier=_NO_MATTER,
    )
