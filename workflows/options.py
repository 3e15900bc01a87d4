"""Time-outs and retries of the steps, each with its reason."""

from datetime import timedelta
from typing import NotRequired, TypedDict

from temporalio.common import Priority, RetryPolicy
from temporalio.workflow import ActivityCancellationType

from toolagent.contracts.calls import ToolCall
from toolagent.contracts.routes import ToolControl
from toolagent_service import step_names
from toolagent_service.calls.lanes import door_queue
from toolagent_service.contracts.steps import CallPlan

HOST_PATIENCE = timedelta(seconds=30)
"""How long a call may wait in a host's queue before we ask whether the host is alive; doubled each time."""

JOIN_PAUSE, LONGEST_JOIN_PAUSE = timedelta(seconds=1), timedelta(minutes=10)
"""The pause before we ask again about a call whose door did not answer; doubled each time. A door with a dead queue may renew its lease for
weeks: with a round in a minute, the history would be full after some days."""

_DOOR_PATIENCE = timedelta(seconds=3)

CALLBACK_PATIENCE = timedelta(hours=24)
"""How long the receiver of a callback may be away."""

_HEARTBEAT = timedelta(seconds=10)
"""A killed worker is noticed after this time."""

_HOST_LOST = "TemporalTimeout:Heartbeat"
"""Temporal's error type for a missing heartbeat."""

_MAINTAIN_PATIENCE = timedelta(seconds=10)
"""A live host takes maintenance at once, unless it is busy with control requests."""

_GRACE = timedelta(seconds=60)
"""Time of an attempt besides starting and calling the tool: waiting for a slot of the tool, taking in files. The activity bounds all these
itself; this limit is for an activity that fails to."""

_LONG_PAUSE = timedelta(seconds=1)
"""Longer pauses between attempts of a local activity become timers."""

_ONCE = RetryPolicy(maximum_attempts=1)
_FIRST = 1
"""The highest priority."""

_LIVES = 3
"""How many whole attempts fit into the life of a call."""


class LocalOptions(TypedDict):
    """A worker that stops waits for its local attempts. Pauses beyond the threshold are Temporal's timers, which outlive the worker.

    Temporal only checks at these timers whether the time of a local activity is over.
    """

    start_to_close_timeout: timedelta
    retry_policy: RetryPolicy
    summary: str
    local_retry_threshold: NotRequired[timedelta]
    schedule_to_close_timeout: NotRequired[timedelta]


class ActivityOptions(TypedDict):
    task_queue: str
    start_to_close_timeout: timedelta
    retry_policy: RetryPolicy
    summary: str
    schedule_to_start_timeout: NotRequired[timedelta]
    schedule_to_close_timeout: NotRequired[timedelta]
    heartbeat_timeout: NotRequired[timedelta]
    cancellation_type: NotRequired[ActivityCancellationType]
    priority: NotRequired[Priority]


def retry(first_s: float, longest_s: float | None = None, *, attempts: int = 0) -> RetryPolicy:
    """Pauses grow from `first_s` to `longest_s`; 0 attempts: no limit."""
    longest = timedelta(seconds=longest_s) if longest_s is not None else None
    return RetryPolicy(initial_interval=timedelta(seconds=first_s), maximum_interval=longest, maximum_attempts=attempts)


def admit(tool_id: str) -> LocalOptions:
    """Only affects the record of the call, so it may be repeated. A caller that waits longer gets `unavailable`."""
    return {
        "start_to_close_timeout": timedelta(seconds=10),
        "schedule_to_close_timeout": timedelta(seconds=60),
        "retry_policy": retry(0.2, 5),
        "local_retry_threshold": _LONG_PAUSE,
        "summary": f"admit {tool_id}",
    }


def make_batch(summary: str) -> LocalOptions:
    """Returns when the lane's budget is over. Repeating it makes no call twice."""
    return {
        "start_to_close_timeout": timedelta(seconds=10),
        "retry_policy": retry(0.05, 1),
        "summary": summary,
    }


def place(plan: CallPlan) -> LocalOptions:
    """Decides in memory, with the options of `admit`."""
    return {**admit(plan.tool_id), "summary": f"place {plan.tool_id}"}


def call(plan: CallPlan, patience: timedelta, *, is_bound: bool, is_begun: bool) -> ActivityOptions:
    """Attempts are repeated while there is time, because workers may die, restart or fail. In the queue of one host, the death of the host
    ends the activity: another attempt would wait for `patience`. A call that `is_bound`, of a session, waits for its host, because its
    session is nowhere else. An attempt of a call that `is_begun` comes before calls that have not begun.

    A request that may have been sent is not sent again (see `engine.calling.queued_call`).
    """
    attempt = timedelta(seconds=plan.start_timeout_s + plan.timeout_s) + _GRACE
    return {
        "task_queue": plan.placement.queue,
        "schedule_to_start_timeout": patience,
        "start_to_close_timeout": attempt,
        "schedule_to_close_timeout": timedelta(seconds=plan.queue_timeout_s) + _LIVES * attempt,
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(milliseconds=500),
            maximum_interval=timedelta(seconds=10),
            non_retryable_error_types=[_HOST_LOST] if plan.placement.host and not is_bound else None,
        ),
        # The tool may be answering, and the result says whether it stopped.
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "priority": Priority(priority_key=_FIRST if is_begun else plan.priority),
        "summary": f"call {plan.tool_id}",
    }


def join_call(tool_id: str, door: str) -> ActivityOptions:
    """A live door takes it at once. One attempt: then admission is asked which door has the call."""
    return {
        "task_queue": door_queue(door),
        "schedule_to_start_timeout": _DOOR_PATIENCE,
        "start_to_close_timeout": timedelta(days=1),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": _ONCE,
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": f"wait for {tool_id}",
    }


def look(tool_id: str) -> LocalOptions:
    """Asks Temporal about another workflow, until Temporal answers. The activity bounds other failures."""
    return {
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": retry(1, 30),
        "summary": f"look at {tool_id}",
    }


def await_call(call: ToolCall) -> ActivityOptions:
    """Each attempt is a look at another workflow, which may take days. Attempts that find it running are not in the history."""
    return {
        "task_queue": step_names.LOOKS_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": retry(0.5, 30),
        "priority": Priority(priority_key=call.priority),
        "summary": f"wait for {call.tool_id}",
    }


def deliver_callback(task_id: str) -> ActivityOptions:
    """At least once: an attempt that dies is repeated. The activity bounds the post itself, far below this."""
    return {
        "task_queue": step_names.CALLBACKS_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "schedule_to_close_timeout": CALLBACK_PATIENCE,
        "retry_policy": retry(1, 900),
        "summary": f"tell of {task_id}",
    }


def note_callback() -> ActivityOptions:
    """Writes by a derived id; retried until the database answers."""
    return {
        "task_queue": step_names.CALLBACKS_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": retry(1, 60),
        "summary": "write down how it ended",
    }


def settle(plan: CallPlan) -> LocalOptions:
    """Retried until the database answers, because each call must have a record. The activity bounds other failures."""
    return written(f"settle {plan.tool_id}")


def session_note(summary: str) -> LocalOptions:
    """Writes a row by its id; retried until the database answers, because a launch must not be forgotten."""
    return written(f"session: {summary}")


def written(summary: str) -> LocalOptions:
    """Reads or writes rows; retried until the database answers."""
    return {
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": retry(0.2, 10),
        "local_retry_threshold": _LONG_PAUSE,
        "summary": summary,
    }


def control(control: ToolControl, queue: str) -> ActivityOptions:
    """Starting a tool may build its environment first. Each action may be repeated."""
    return {
        "task_queue": queue,
        "schedule_to_start_timeout": HOST_PATIENCE,
        "start_to_close_timeout": timedelta(minutes=10),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(maximum_attempts=3),
        "summary": f"{control.action.value} {control.tool_id}",
    }


def list_live_hosts() -> LocalOptions:
    """Only reads; a failure waits for the next run of the schedule."""
    return {
        "start_to_close_timeout": timedelta(seconds=10),
        "schedule_to_close_timeout": timedelta(seconds=30),
        "retry_policy": retry(0.2, attempts=3),
        "local_retry_threshold": _LONG_PAUSE,
        "summary": "hosts that are alive",
    }


def maintain_host(host: str, queue: str) -> ActivityOptions:
    """One attempt: the next run of the schedule repeats it. The host bounds each check and stop itself."""
    return {
        "task_queue": queue,
        "schedule_to_start_timeout": _MAINTAIN_PATIENCE,
        "start_to_close_timeout": timedelta(minutes=3),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": _ONCE,
        "summary": f"maintain {host}",
    }


def maintain_service() -> ActivityOptions:
    """One attempt, as for a host."""
    return {
        "task_queue": step_names.MAINTAIN_QUEUE,
        "schedule_to_start_timeout": _MAINTAIN_PATIENCE,
        "start_to_close_timeout": timedelta(minutes=1),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": _ONCE,
        "summary": "maintain the service",
    }


def sync_knowhub() -> ActivityOptions:
    """Three attempts, in at most five minutes, because a client may wait. The schedule repeats it anyway.

    The activity stops itself before its time is over (`engine.knowhub.sync`). A killed worker is noticed by its heartbeat.
    """
    return {
        "task_queue": step_names.MAINTAIN_QUEUE,
        "schedule_to_start_timeout": HOST_PATIENCE,
        "start_to_close_timeout": timedelta(minutes=4),
        "schedule_to_close_timeout": timedelta(minutes=4, seconds=45),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": retry(2, attempts=3),
        "summary": "synchronise with KnowHub",
    }
