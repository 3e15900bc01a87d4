"""What follows when a call has ended: one module an effect and one line here, in their order."""

from engine.calls.effects import crashes, recording, telling, timing
from engine.calls.effects.ended import Effect

__all__ = ["EFFECTS"]

EFFECTS: tuple[Effect, ...] = (crashes.EFFECT, recording.EFFECT, telling.EFFECT, timing.EFFECT)
"""Record before telling; and a crash before the record, after which the tool is judged."""
