"""Values of a hundred thousand names, each of which is held against every pattern of a schema: that takes seconds."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue

from toolagent.validation.weight import weight_of

R = TypeVar("R")

_AT_ONCE = 2_000
"""Values that are walked through in milliseconds."""


async def walked(value: JsonValue, walk: Callable[[], R]) -> R:
    """What comes of a walk through the value; where that takes long, others are answered in between."""
    return await asyncio.to_thread(walk) if weight_of(value, _AT_ONCE) > _AT_ONCE else walk()
