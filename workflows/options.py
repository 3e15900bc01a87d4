"""Time-outs and retries of every step, each with its reason."""

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
"""How long a host's queue may leave a call waiting before we ask whether the host is still there; doubled each time."""

JOIN_PAUSE, LONGEST_JOIN_PAUSE = timedelta(seconds=1), timedelta(minutes=10)
"""Before it is asked again who has a call whose door did not answer; doubled each time. A door may beat for weeks whose queue is dead: at
one round in a minute a history is full after some days."""

_DOOR_PATIENCE = timedelta(seconds=3)

CALLBACK_PATIENCE = timedelta(hours=24)
"""How long a receiver may be away."""

_HEARTBEAT = timedelta(seconds=10)
"""A worker that was killed is noticed after this long."""

_HOST_LOST = "TemporalTimeout:Heartbeat"
"""What Temporal's server calls a heartbeat that did not come, among the types of errors."""

_MAINTAIN_PATIENCE = timedelta(seconds=10)
"""A host that is alive takes it at once, unless it is busy with orders."""

_GRACE = timedelta(seconds=60)
"""What an attempt may take on top of starting and calling the tool: waiting for one of its own slots, taking in files. The activity
keeps all these times itself; this one is for an activity that does not."""

_LONG_PAUSE = timedelta(seconds=1)
"""Between two attempts of a local activity."""

_FIRST = 1
"""The highest priority."""

_LIVES = 3
"""How many whole attempts fit into the life of a call."""


class LocalOptions(TypedDict):
    """A worker that stops waits for its local attempts; beyond the threshold pauses are Temporal's timers, which outlive it.

    Only between two timers does Temporal look whether the time of a local activity is over: without them it never is.
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


def admit(tool_id: str) -> LocalOptions:
    """Has no effects but on the call's own record, so it may be tried again. Whoever waits for longer is told that we are not well."""
    return {
        "start_to_close_timeout": timedelta(seconds=10),
        "schedule_to_close_timeout": timedelta(seconds=60),
        "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5)),
        "local_retry_threshold": _LONG_PAUSE,
        "summary": f"admit {tool_id}",
    }


def make_batch(summary: str) -> LocalOptions:
    """Returns when the lane's budget is over, whatever its calls do; made again it makes nothing twice."""
    return {
        "start_to_close_timeout": timedelta(seconds=10),
        "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=50), maximum_interval=timedelta(seconds=1)),
        "summary": summary,
    }


def place(plan: CallPlan) -> LocalOptions:
    """Decides in memory; as patient as `admit`."""
    return {**admit(plan.tool_id), "summary": f"place {plan.tool_id}"}


def call(plan: CallPlan, patience: timedelta, *, is_bound: bool, is_begun: bool) -> ActivityOptions:
    """Attempts after the first are for workers that died, restarted or were in trouble, as many as there is time for. Where the queue is
    one host's, its death ends the activity: another attempt there would wait for `patience`. A call that `is_bound`, of a session or a look
    at one, waits for its host: what it works with is nowhere else. Who waits for one that `is_begun` passes those that have not begun.

    What may have been sent is not sent again (see `engine.calling.queued_call`).
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
        # The tool's answer may already be on its way, and whether it stopped belongs into the result.
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "priority": Priority(priority_key=_FIRST if is_begun else plan.priority),
        "summary": f"call {plan.tool_id}",
    }


def join_call(tool_id: str, door: str) -> ActivityOptions:
    """A door that is there takes it at once. One attempt: after it admission says who has the call."""
    return {
        "task_queue": door_queue(door),
        "schedule_to_start_timeout": _DOOR_PATIENCE,
        "start_to_close_timeout": timedelta(days=1),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(maximum_attempts=1),
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": f"wait for {tool_id}",
    }


def look(tool_id: str) -> LocalOptions:
    """Asks Temporal after another workflow, again and again until Temporal answers; the activity bounds what else may go wrong."""
    return {
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30)),
        "summary": f"look at {tool_id}",
    }


def await_call(call: ToolCall) -> ActivityOptions:
    """Each attempt is a look at another workflow, which may take days; attempts that find it running leave nothing in the history."""
    return {
        "task_queue": step_names.LOOKS_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=0.5), maximum_interval=timedelta(seconds=30)),
        "priority": Priority(priority_key=call.priority),
        "summary": f"wait for {call.tool_id}",
    }


def deliver_callback(task_id: str) -> ActivityOptions:
    """At least once: an attempt that dies is made again. The post itself is bounded by the activity, well below this."""
    return {
        "task_queue": step_names.CALLBACKS_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "schedule_to_close_timeout": CALLBACK_PATIENCE,
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=15)),
        "summary": f"tell of {task_id}",
    }


def note_callback() -> ActivityOptions:
    """Writes by a derived id; tried until the database is there."""
    return {
        "task_queue": step_names.CALLBACKS_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1)),
        "summary": "write down how it ended",
    }


def settle(plan: CallPlan) -> LocalOptions:
    """Tried until the database is there: a call that was made must end with a record. The activity bounds what else may go wrong."""
    return _written(f"settle {plan.tool_id}")


def session_note(summary: str) -> LocalOptions:
    """Writes a row by its id; tried until the database is there: what was launched must not be forgotten."""
    return _written(f"session: {summary}")


def _written(summary: str) -> LocalOptions:
    return {
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10)),
        "local_retry_threshold": _LONG_PAUSE,
        "summary": summary,
    }


def control(control: ToolControl, queue: str) -> ActivityOptions:
    """Starting may build an environment first; each action may be repeated."""
    return {
        "task_queue": queue,
        "schedule_to_start_timeout": HOST_PATIENCE,
        "start_to_close_timeout": timedelta(minutes=10),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(maximum_attempts=3),
        "summary": f"{control.action.value} {control.tool_id}",
    }


def list_live_hosts() -> LocalOptions:
    """Reads; the next run of the schedule comes anyway."""
    return {
        "start_to_close_timeout": timedelta(seconds=10),
        "schedule_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=3),
        "local_retry_threshold": _LONG_PAUSE,
        "summary": "hosts that are alive",
    }


def maintain_host(host: str, queue: str) -> ActivityOptions:
    """One attempt: the next run of the schedule is the next one. The host bounds each of its checks and stops itself."""
    return {
        "task_queue": queue,
        "schedule_to_start_timeout": _MAINTAIN_PATIENCE,
        "start_to_close_timeout": timedelta(minutes=3),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(maximum_attempts=1),
        "summary": f"maintain {host}",
    }


def maintain_service() -> ActivityOptions:
    """One attempt, as of a host."""
    return {
        "task_queue": step_names.MAINTAIN_QUEUE,
        "schedule_to_start_timeout": _MAINTAIN_PATIENCE,
        "start_to_close_timeout": timedelta(minutes=1),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(maximum_attempts=1),
        "summary": "maintain the service",
    }


def sync_knowhub() -> ActivityOptions:
    """Three attempts: whoever asked for it waits, for five minutes at most. The schedule comes again anyhow.

    The activity stops by itself before its time is over (`engine.knowhub.sync`); a worker that was killed is noticed by its heartbeat.
    """
    return {
        "task_queue": step_names.MAINTAIN_QUEUE,
        "schedule_to_start_timeout": HOST_PATIENCE,
        "start_to_close_timeout": timedelta(minutes=4),
        "schedule_to_close_timeout": timedelta(minutes=4, seconds=45),
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=2), maximum_attempts=3),
        "summary": "synchronise with KnowHub",
    }
