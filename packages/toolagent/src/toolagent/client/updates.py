"""Waiting for an update of a workflow: as long as a worker serves the workflow, and no longer."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import WorkflowHandle, WorkflowQueryFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client.patience import queried

__all__ = ["attended"]

T = TypeVar("T")

LOOK_S, ANSWER_S = 15.0, 7.5
"""Seconds between two looks, and the longest time for one. After two without an answer the wait ends, within 45 s."""

_LOOKS = 2


async def attended(update: Awaitable[T], workflow: WorkflowHandle[Any, Any], query: str, failure: Callable[[str], Exception]) -> T:
    """The outcome of an update. Raises `failure`, given the reason, if the workflow answers neither the update nor the query.

    By itself, the SDK would ask forever while the server answers in time that there is no outcome yet.
    """
    bound, task = asyncio.timeout(None), asyncio.current_task()
    cancels = task.cancelling() if task is not None else 0
    try:
        async with bound:
            with _looks(bound, workflow, query):
                return await update
    except (WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError) as error:
        # The SDK raises the same error for a time-out, for our cancellation and for that of our caller.
        if task is not None and task.cancelling() > cancels:
            raise asyncio.CancelledError from error
        if bound.expired():
            raise failure("Nothing answers for it: no worker has it, or Temporal stands still. What was asked may yet be done.") from error
        raise failure("Temporal did not answer in time.") from error


@contextmanager
def _looks(bound: asyncio.Timeout, workflow: WorkflowHandle[Any, Any], query: str) -> Generator[None]:
    """Ends `bound` when nothing answers for the workflow any more. The first look is a timer: most updates end before it."""
    begun: list[asyncio.Task[None]] = []
    first = asyncio.get_running_loop().call_later(
        LOOK_S, lambda: begun.append(asyncio.create_task(_end_when_deserted(bound, workflow, query)))
    )
    try:
        yield
    finally:
        first.cancel()
        for task in begun:
            task.cancel()


async def _end_when_deserted(bound: asyncio.Timeout, workflow: WorkflowHandle[Any, Any], query: str) -> None:
    missed = 0
    while True:
        missed = 0 if await _is_attended(workflow, query) else missed + 1
        if missed == _LOOKS:
            break
        await asyncio.sleep(LOOK_S)
    bound.reschedule(asyncio.get_running_loop().time())


async def _is_attended(workflow: WorkflowHandle[Any, Any], query: str) -> bool:
    """Whether a worker answers for the workflow. True if the workflow is gone, because the update itself then fails."""
    try:
        await queried(workflow, query, None, timedelta(seconds=ANSWER_S))
    except WorkflowQueryFailedError:
        return True
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND
    except Exception:  # noqa: BLE001 - whatever it is, the caller must not wait forever
        return False
    return True
