"""The effects of the end of a call: one module and one line here for each, in order."""

from engine.calls.effects import crashes, recording, telling, timing
from engine.calls.effects.ended import Effect

__all__ = ["EFFECTS"]

EFFECTS: tuple[Effect, ...] = (crashes.EFFECT, recording.EFFECT, telling.EFFECT, timing.EFFECT)
"""Crashes come before the record, because the tool is judged after it; telling comes after the record."""
