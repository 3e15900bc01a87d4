"""Delivers a callback, and records the end of the delivery."""

from datetime import timedelta

from temporalio import activity
from temporalio.common import RetryPolicy

from activities.failures import expected
from activities.faults import Faults
from engine.callbacks.deliveries import Deliveries
from engine.callbacks.posting import CallbackNotTaken
from toolagent.contracts.callbacks import Callback, CallbackEnd, CallbackNote
from toolagent_service import step_names

_LONGEST = timedelta(minutes=15)
_DOUBLINGS = 32
"""After so many doublings every wait is the longest one."""


class DeliverCallback:
    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._faults = Faults()

    @activity.defn(name=step_names.DELIVER_CALLBACK)
    async def deliver_callback(self, callback: Callback) -> CallbackEnd:
        """Raises ApplicationError if another attempt may succeed; Temporal makes it."""
        try:
            return await self._deliveries.attempt(callback, activity.info().attempt)
        except CallbackNotTaken as refusal:
            wait = None if refusal.wait_s is None else max(timedelta(seconds=refusal.wait_s), _backoff(activity.info()))
            # `from None`: the traces of its causes can exceed what Temporal keeps of a failure, and the reason would be lost.
            raise expected(str(refusal), step_names.CALLBACK_NOT_TAKEN, pause=wait) from None

    @activity.defn(name=step_names.NOTE_CALLBACK)
    async def note_callback(self, note: CallbackNote) -> None:
        with self._faults.bounded():
            await self._deliveries.record(note)


def _backoff(info: activity.Info) -> timedelta:
    """Temporal's own pause. A receiver may ask for a longer one, not for a shorter one."""
    policy = info.retry_policy or RetryPolicy()
    longest = policy.maximum_interval or _LONGEST
    return min(policy.initial_interval * policy.backoff_coefficient ** min(info.attempt - 1, _DOUBLINGS), longest)
