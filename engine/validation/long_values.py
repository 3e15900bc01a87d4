"""Walks through large values: a hundred thousand names against every pattern of a schema take seconds."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue

from toolagent.core.weights import weight_of

R = TypeVar("R")

_AT_ONCE = 2_000
"""A walk through so many values takes milliseconds."""


async def walked(value: JsonValue, walk: Callable[[], R]) -> R:
    """The result of the walk. A long walk runs in a thread, so that the event loop stays free."""
    return await asyncio.to_thread(walk) if weight_of(value, _AT_ONCE) > _AT_ONCE else walk()
