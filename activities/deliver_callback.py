"""Delivering a callback, and writing down how that ended."""

from datetime import timedelta

from temporalio import activity
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.faults import Faults
from engine.callbacks.posting import CallbackNotTaken, CallbackPoster
from engine.store.clock import now
from engine.store.events import EventTable
from toolagent.contracts.callbacks import Callback, CallbackEnd, CallbackNote, CallbackState
from toolagent.core.calls.callbacks import callback_event
from toolagent_service import step_names

_LONGEST = timedelta(minutes=15)
_DOUBLINGS = 32
"""After so many any wait is the longest one."""


class DeliverCallback:
    def __init__(self, poster: CallbackPoster, events: EventTable) -> None:
        self._poster = poster
        self._events = events
        self._faults = Faults()

    @activity.defn(name=step_names.DELIVER_CALLBACK)
    async def deliver_callback(self, callback: Callback) -> CallbackEnd:
        """Raises ApplicationError when it is worth another attempt, which Temporal makes."""
        attempt = activity.info().attempt
        try:
            status = await self._poster.post(callback)
        except CallbackNotTaken as refusal:
            if refusal.is_final:
                return CallbackEnd(state=CallbackState.FAILED, attempts=attempt, status_code=refusal.status_code, reason=str(refusal))
            wait = None if refusal.wait_s is None else max(timedelta(seconds=refusal.wait_s), _backoff(activity.info()))
            # Without its causes, whose traces can be more than Temporal keeps of a failure: then the reason would be lost.
            raise ApplicationError(
                str(refusal), type=step_names.CALLBACK_NOT_TAKEN, category=ApplicationErrorCategory.BENIGN, next_retry_delay=wait
            ) from None
        return CallbackEnd(state=CallbackState.DELIVERED, attempts=attempt, status_code=status)

    @activity.defn(name=step_names.NOTE_CALLBACK)
    async def note_callback(self, note: CallbackNote) -> None:
        with self._faults.bounded():
            await self._events.add((callback_event(note, now()),))


def _backoff(info: activity.Info) -> timedelta:
    """What Temporal would wait by itself. A receiver may ask for more patience, not for a post each second."""
    policy = info.retry_policy or RetryPolicy()
    longest = policy.maximum_interval or _LONGEST
    return min(policy.initial_interval * policy.backoff_coefficient ** min(info.attempt - 1, _DOUBLINGS), longest)
