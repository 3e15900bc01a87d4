"""Waiting for a Temporal server that is down, for a limited time.

Waiting for a healthy one does not count.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import WithStartWorkflowOperation, WorkflowExecutionDescription, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from tenacity import AsyncRetrying, RetryCallState, RetryError, retry_if_exception, wait_exponential

__all__ = ["SilenceError", "described", "if_known", "is_away", "patiently", "queried", "reached", "starting"]

T = TypeVar("T")
Clock = Callable[[], float]
_DESCRIBE_TIMEOUT = timedelta(seconds=5)
_HEALTHY_S = 15.0
"""The SDK retries for 10 s. If an attempt lasted longer than this, the server answered for at least a part of it."""


_AWAY = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.UNKNOWN,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.ABORTED,
)


class SilenceError(Exception):
    """The server did not answer within the allowed time."""


class _Silence:
    """When the current silence of the server began, for one waiting caller."""

    def __init__(self, patience_s: float, clock: Clock) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._began: float | None = None
        self._attempted = 0.0

    def before(self, _state: RetryCallState) -> None:
        self._attempted = self._clock()

    def is_over(self, _state: RetryCallState) -> bool:
        moment = self._clock()
        if self._began is None or moment - self._attempted > _HEALTHY_S:
            self._began = moment
        return moment - self._began >= self._patience_s


async def patiently(
    ask: Callable[[], Awaitable[T]], is_away: Callable[[BaseException], bool], patience_s: float, clock: Clock = time.monotonic
) -> T:
    """Ask until there is an answer. Raises SilenceError after `patience_s` seconds without a reachable server."""
    silence = _Silence(patience_s, clock)
    try:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(is_away), before=silence.before, stop=silence.is_over, wait=wait_exponential(0.2, max=2)
        ):
            with attempt:
                return await ask()
    except RetryError as error:
        raise SilenceError from error
    raise AssertionError("tenacity ended without an outcome")


def is_away(error: BaseException) -> bool:
    """Whether an error only says that Temporal cannot be reached now."""
    return isinstance(error, RPCError) and error.status in _AWAY


@contextmanager
def reached(failure: Callable[[str], Exception]) -> Generator[None]:
    """Raises `failure`, given the reason as a sentence, if Temporal cannot be reached."""
    try:
        yield
    except RPCError as error:
        if not is_away(error):
            raise
        raise failure(f"Temporal does not answer ({error.status.name}).") from error


@contextmanager
def if_known() -> Generator[None]:
    """Leaves the block if Temporal does not know the workflow."""
    try:
        yield
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


async def described(handle: WorkflowHandle[Any, Any]) -> WorkflowExecutionDescription | None:
    """None when Temporal does not know it."""
    with if_known():
        return await handle.describe(rpc_timeout=_DESCRIBE_TIMEOUT)
    return None


async def queried(handle: WorkflowHandle[Any, Any], query: str, result_type: type[T] | None, within: timedelta) -> T:
    """The answer to a query. Raises RPCError `within` this time: the SDK's own bound is for one attempt, and it makes several."""
    try:
        async with asyncio.timeout(within.total_seconds()):
            answer: T = await handle.query(query, result_type=result_type, rpc_timeout=within)
            return answer
    except TimeoutError as error:
        raise RPCError("the query was not answered in time", RPCStatusCode.DEADLINE_EXCEEDED, b"") from error


@contextmanager
def starting(operation: WithStartWorkflowOperation[Any, Any]) -> Generator[None]:
    """Wraps an update with a start. The SDK also keeps its failure in the handle of the start, and logs it if nothing reads that."""
    try:
        yield
    except BaseException:
        asyncio.ensure_future(operation.workflow_handle()).add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise
