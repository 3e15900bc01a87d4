"""Delivers a callback, and records the end of the delivery."""

from datetime import UTC, datetime

from engine.callbacks.posting import CallbackNotTaken, CallbackPoster
from engine.store.events import EventTable
from toolagent.contracts.callbacks import Callback, CallbackEnd, CallbackNote, CallbackState
from toolagent.core.calls.callbacks import callback_event


class Deliveries:
    def __init__(self, poster: CallbackPoster, events: EventTable) -> None:
        self._poster, self._events = poster, events

    async def attempt(self, callback: Callback, number: int) -> CallbackEnd:
        """Attempt `number`, from 1. Raises CallbackNotTaken if another one may succeed."""
        try:
            status = await self._poster.post(callback)
        except CallbackNotTaken as refusal:
            if not refusal.is_final:
                raise
            return CallbackEnd(state=CallbackState.FAILED, attempts=number, status_code=refusal.status_code, reason=str(refusal))
        return CallbackEnd(state=CallbackState.DELIVERED, attempts=number, status_code=status)

    async def record(self, note: CallbackNote) -> None:
        """Idempotent: the id of the event follows from the note."""
        await self._events.add((callback_event(note, datetime.now(UTC)),))
