"""Work in threads that a cancelled task waits for: otherwise it could write again what is being removed."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from engine import uncancelled

P = ParamSpec("P")
R = TypeVar("R")


async def finished(work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """As `asyncio.to_thread`, whose thread goes on by itself when it is cancelled: this waits for its end, and is cancelled then."""
    return await uncancelled.finished(asyncio.to_thread(work, *arguments, **named))
