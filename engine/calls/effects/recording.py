"""The result is recorded with its events, once, however often the call is settled."""

from dataclasses import replace

from engine.calls.effects.ended import Effect, Ended, Places
from engine.calls.records import events_of


async def _record(ended: Ended, places: Places) -> Ended:
    events = events_of(ended.result, started=ended.was_started)
    stands = await places.calls.settle(ended.record, ended.result, events, ended.claim, is_unclaimed=ended.is_unclaimed)
    return replace(ended, result=stands)


EFFECT = Effect("recording", "writes result and events, unless the call has a result: then that stands", _record)
