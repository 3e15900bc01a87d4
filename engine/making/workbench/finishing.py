"""Waits for threads even if cancelled, so that a thread cannot write files while they are removed."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from engine import uncancelled

P = ParamSpec("P")
R = TypeVar("R")


async def finished(work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Like `asyncio.to_thread`, but a cancellation waits for the thread's end."""
    return await uncancelled.finished(asyncio.to_thread(work, *arguments, **named))
