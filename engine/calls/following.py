"""What follows from the end of a call: all effects, in their order."""

from engine.calls.effects import EFFECTS
from engine.calls.effects.ended import Ended, Places
from toolagent.contracts.calls import ToolResult


async def settled(ended: Ended, places: Places) -> ToolResult:
    """The result that stands, after all of it."""
    for effect in EFFECTS:
        ended = await effect.run(ended, places)
    return ended.result
