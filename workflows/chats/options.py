"""Time-outs and retries of the steps of a conversation, each with its reason."""

from datetime import timedelta

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from toolagent.client import names
from toolagent_service.contracts.chats import WRITING_DOWN_S
from workflows.options import ActivityOptions, LocalOptions

_HEARTBEAT = timedelta(seconds=15)
"""A worker that was killed is noticed after this long. Somebody waits for the answer."""

_TOOL = timedelta(seconds=60)
"""Its functions read tables, or start a task."""

_BUSY = timedelta(seconds=30)
"""The longest pause before a busy model is asked again, unless it names one itself."""


def archive(summary: str) -> LocalOptions:
    """Reads and writes by derived keys; tried until the database is there: what was said must not be lost."""
    return {
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10)),
        "local_retry_threshold": timedelta(seconds=1),
        "summary": summary,
    }


def ask_model(number: int, turn: int, over: timedelta) -> ActivityOptions:
    """A busy model is asked again until the time of the answer is `over`."""
    return {
        "task_queue": names.CHATS_QUEUE,
        "start_to_close_timeout": over,
        "schedule_to_close_timeout": over,
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=_BUSY),
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": f"message {number}, turn {turn}",
    }


def answer_turn(number: int, turn: int, over: timedelta) -> ActivityOptions:
    """As `ask_model`. A turn that comes last of all is written down after that."""
    return ask_model(number, turn, over + timedelta(seconds=WRITING_DOWN_S))


def use_tool(summary: str) -> ActivityOptions:
    """What came of it is written down before it is told, so that a repeated attempt finds it."""
    return {
        "task_queue": names.CHATS_QUEUE,
        "start_to_close_timeout": _TOOL,
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=10), maximum_attempts=10
        ),
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": summary,
    }


def await_task(task_id: str) -> ActivityOptions:
    """Each attempt is a look; those that find the task at work leave nothing in the history. It may take days."""
    return {
        "task_queue": names.CHATS_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=0.5), maximum_interval=timedelta(seconds=5)),
        "summary": f"wait for {task_id}",
    }
