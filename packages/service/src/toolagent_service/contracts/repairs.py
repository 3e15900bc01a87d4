"""Repairs that a tool's failing calls open."""

from enum import StrEnum


class Meanwhile(StrEnum):
    """What calls of a tool get while it is repaired: `unavailable` with the task's id, the version before, or the version that fails."""

    REFUSE = "refuse"
    PREVIOUS = "previous"
    SERVE = "serve"
