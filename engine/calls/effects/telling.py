"""Gives the result to waiters in this process."""

from engine.calls.effects.ended import Effect, Ended, Places


async def _tell(ended: Ended, places: Places) -> Ended:
    places.settled.tell(ended.result)
    return ended


EFFECT = Effect("telling", "hands the result to who waits for it in this process", _tell)
