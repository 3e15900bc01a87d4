"""Remembers the duration: slow tools do not use the lane."""

from engine.calls.effects.ended import Effect, Ended, Places


async def _note(ended: Ended, places: Places) -> Ended:
    if ended.was_started:
        places.durations.note(ended.record.tool_id, ended.record.version, ended.result.execution_time)
    return ended


EFFECT = Effect("timing", "remembers in this process how long the tool took", _note)
