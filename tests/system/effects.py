"""The file in which a diligent tool leaves a line for each effect."""

from pathlib import Path

from tests.system.waiting import wait_until

__all__ = ["count_of", "wait_for_effect"]


def count_of(effects: Path, line: str = "effect") -> int:
    return effects.read_text("utf-8").splitlines().count(line) if effects.exists() else 0


def wait_for_effect(effects: Path, line: str = "effect") -> None:
    """Until the tool has begun; its environment may have to be built first."""
    wait_until(lambda: count_of(effects, line), f"the effect {line!r} in {effects}", 90.0)
