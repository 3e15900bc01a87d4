"""An effect of a call's end that the service does not have, written like any other."""

from engine.calls.effects.ended import Effect, Ended, Places

SEEN: list[str] = []


async def _see(ended: Ended, _: Places) -> Ended:
    SEEN.append(ended.result.call_id)
    return ended


EFFECT = Effect("second", "remembers the id", _see)
