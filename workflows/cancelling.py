"""Cancellations of workflows that come during work that must be finished, or are noticed late."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

R = TypeVar("R")


def raise_if_cancelled() -> None:
    """Raises CancelledError before new work if the workflow is cancelled: a step that ended at that moment did not raise it."""
    if workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError


async def despite_cancellation(work: Callable[[], Awaitable[R]], heard: Callable[[], None] = lambda: None) -> R:
    """The result of the work, which is repeated after each cancellation; calls `heard` for each. Raises all other errors."""
    while True:
        try:
            return await work()
        except (asyncio.CancelledError, FailureError) as error:
            if not is_cancelled_exception(error):
                raise
            heard()


async def ended(task: asyncio.Task[R], unbegun: R) -> R:
    """The result of the task; `unbegun` if it was cancelled before it began."""
    try:
        return await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
        return unbegun
