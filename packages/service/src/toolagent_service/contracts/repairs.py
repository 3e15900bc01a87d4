"""Repairs that are started by failing calls."""

from enum import StrEnum


class Meanwhile(StrEnum):
    """What calls get during a repair: `unavailable` with the task's id, the previous version, or the failing version."""

    REFUSE = "refuse"
    PREVIOUS = "previous"
    SERVE = "serve"
