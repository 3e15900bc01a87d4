"""Time-outs and retries of the steps of a conversation, each with its reason."""

from datetime import timedelta

from temporalio.workflow import ActivityCancellationType

from toolagent.client import names
from toolagent_service.contracts.chats import WRITING_DOWN_S
from workflows.options import ActivityOptions, LocalOptions, retry, written

_HEARTBEAT = timedelta(seconds=15)
"""A killed worker is noticed after this time. A person waits for the answer."""

_TOOL = timedelta(seconds=60)
"""The functions of the role read tables, or start a task."""

_BUSY_S = 30
"""The longest pause before a busy model is asked again, unless the model names one."""


def archive(summary: str) -> LocalOptions:
    """Reads and writes by derived keys. Retried until the database answers, because messages must not be lost."""
    return written(summary)


def ask_model(number: int, turn: int, over: timedelta) -> ActivityOptions:
    """A busy model is asked again until the time of the answer is `over`."""
    return {
        "task_queue": names.CHATS_QUEUE,
        "start_to_close_timeout": over,
        "schedule_to_close_timeout": over,
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": retry(1, _BUSY_S),
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": f"message {number}, turn {turn}",
    }


def answer_turn(number: int, turn: int, over: timedelta) -> ActivityOptions:
    """As `ask_model`, with time for recording a turn that ends last."""
    return ask_model(number, turn, over + timedelta(seconds=WRITING_DOWN_S))


def use_tool(summary: str) -> ActivityOptions:
    """The result is recorded before it is returned, so that a repeated attempt finds it."""
    return {
        "task_queue": names.CHATS_QUEUE,
        "start_to_close_timeout": _TOOL,
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": retry(0.5, 10, attempts=10),
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": summary,
    }


def await_task(task_id: str) -> ActivityOptions:
    """Each attempt is a look. Attempts that find the task running are not in the history. It may take days."""
    return {
        "task_queue": names.CHATS_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": retry(0.5, 5),
        "summary": f"wait for {task_id}",
    }
