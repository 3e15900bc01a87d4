"""What follows when a call has ended: one module an effect and one line here, in their order."""

from engine.calls.effects import recording, telling
from engine.calls.effects.ended import Effect, Ended, Places
from toolagent.contracts.calls import ToolResult

__all__ = ["EFFECTS", "settled"]

EFFECTS: tuple[Effect, ...] = (recording.EFFECT, telling.EFFECT)
"""Nobody is told of what is not recorded."""


async def settled(ended: Ended, places: Places) -> ToolResult:
    """The result that stands, after all of it."""
    for effect in EFFECTS:
        ended = await effect.run(ended, places)
    return ended.result
