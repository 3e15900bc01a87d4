"""Steps on one host, while that host is alive."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ActivityError, RetryState, TimeoutError, TimeoutType

from toolagent_service import stubs
from toolagent_service.contracts.making_steps import HostStep, Slot
from workflows import making_options as options
from workflows.options import ActivityOptions

S = TypeVar("S")
R = TypeVar("R")


class HostLost(Exception):
    """The host of the task does not come back; `found` is a live host."""

    def __init__(self, host: str, found: Slot) -> None:
        super().__init__(
            f"The host {host!r}, which the task was on, went away and did not come back, and what the agent had made is there alone. "
            f"Ask for it again: another host does it. What is left on {host!r} goes when that is started."
        )
        self.found = found


async def on_host(stub: Callable[[S], Awaitable[R]], step: S, chosen: Callable[[], ActivityOptions], seek: HostStep) -> R:
    """The result of a step, however long the host is away. Raises HostLost if another host is alive instead."""
    is_told = workflow.cancellation_reason() is not None
    while True:
        try:
            return await workflow.execute_activity(stub, step, **chosen())
        except ActivityError as error:
            if not is_not_taken(error):
                raise
        found = await found_host(seek)
        # A cancellation at the moment when the step fails is seen only here. A step that began after the cancellation goes on.
        if not is_told and workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError
        if found.host != seek.host:
            raise HostLost(seek.host, found)


async def found_host(seek: HostStep) -> Slot:
    """The same host if it is alive, otherwise a live one. After an outage of all hosts, it is often the same one."""
    return await workflow.execute_local_activity(stubs.find_host, seek, **options.find_host(seek.host))


def is_not_taken(error: BaseException) -> bool:
    """Whether no worker took the activity in time, for this attempt or an earlier one."""
    cause = error.cause if isinstance(error, ActivityError) else None
    return isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_START


def is_taken_before(error: BaseException) -> bool:
    """Whether no worker took it again in time, after one had. The error of the earlier attempt is the cause of the time-out."""
    return is_not_taken(error) and isinstance(error, ActivityError) and error.cause is not None and error.cause.__cause__ is not None


def told_when_lost(error: ActivityError) -> Sequence[JsonValue] | None:
    """The last heartbeat of an attempt whose host fell silent; None if the step ended otherwise."""
    cause, is_final = error.cause, error.retry_state is RetryState.NON_RETRYABLE_FAILURE
    return cause.last_heartbeat_details if is_final and isinstance(cause, TimeoutError) and cause.type is TimeoutType.HEARTBEAT else None
