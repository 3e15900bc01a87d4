"""Workflows that are cancelled while they wait for what has to be done all the same, or that hear of it too late."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

R = TypeVar("R")


def heed_cancellation() -> None:
    """Before anything begins: what was to be cancelled may have had its answer all the same, and then nobody else hears of it."""
    if workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError


async def surely(work: Callable[[], Awaitable[R]], heard: Callable[[], None] = lambda: None) -> R:
    """Its answer: it is asked again each time the workflow is cancelled meanwhile, which `heard` is told. Raises what else it raises."""
    while True:
        try:
            return await work()
        except (asyncio.CancelledError, FailureError) as error:
            if not is_cancelled_exception(error):
                raise
            heard()


async def ended(task: asyncio.Task[R], unbegun: R) -> R:
    """Its answer; `unbegun` where it was cancelled before it began, so that it could not give one."""
    try:
        return await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
        return unbegun
