"""Updates of workflows: waited for as long as a worker has the workflow, however long that is, and not without one."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import WorkflowHandle, WorkflowQueryFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client.patience import queried

__all__ = ["attended"]

T = TypeVar("T")

LOOK_S, ANSWER_S = 15.0, 7.5
"""Between looks, and how long one takes at most. Two in a row without an answer are the end: within 45 s."""

_LOOKS = 2


async def attended(update: Awaitable[T], workflow: WorkflowHandle[Any, Any], query: str, failure: Callable[[str], Exception]) -> T:
    """The outcome of an update. Where the workflow answers neither it nor the query, raises `failure`, which is given the reason.

    The SDK by itself asks for ever while the server says in time that nothing has happened yet.
    """
    bound, task = asyncio.timeout(None), asyncio.current_task()
    cancels = task.cancelling() if task is not None else 0
    try:
        async with bound:
            looks = asyncio.create_task(_end_when_deserted(bound, workflow, query))
            try:
                return await update
            finally:
                looks.cancel()
    except (WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError) as error:
        # The SDK says the same of a time-out and of both who may have cancelled it.
        if task is not None and task.cancelling() > cancels:
            raise asyncio.CancelledError from error
        if bound.expired():
            raise failure("Nothing answers for it: no worker has it, or Temporal stands still. What was asked may yet be done") from error
        raise failure("Temporal did not answer in time") from error


async def _end_when_deserted(bound: asyncio.Timeout, workflow: WorkflowHandle[Any, Any], query: str) -> None:
    missed = 0
    while missed < _LOOKS:
        await asyncio.sleep(LOOK_S)
        missed = 0 if await _is_attended(workflow, query) else missed + 1
    bound.reschedule(asyncio.get_running_loop().time())


async def _is_attended(workflow: WorkflowHandle[Any, Any], query: str) -> bool:
    """Whether a worker answers for the workflow, or the update itself will tell that there is none any more."""
    try:
        await queried(workflow, query, None, timedelta(seconds=ANSWER_S))
    except WorkflowQueryFailedError:
        return True
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND
    except Exception:  # noqa: BLE001 - whatever it is, who waits must not do so for ever
        return False
    return True
