"""Time-outs and retries of the steps that make tools, each with its reason."""

from datetime import timedelta
from typing import TypedDict

from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.workflow import ActivityCancellationType, ParentClosePolicy

from toolagent.client import names
from toolagent_service import step_names
from toolagent_service.contracts.making_steps import Slot
from workflows.options import ActivityOptions, LocalOptions

_HEARTBEAT = timedelta(seconds=15)
"""A worker that was killed is noticed after this long."""

_CLEARING = timedelta(seconds=15)
"""How long the host may take to begin to clear up before we ask whether it is alive; doubled each time. Somebody waits for the end."""

_LONGEST = timedelta(hours=2)
"""A step of a task: an image that is built, a gate that waits for a slow tool. Its own limits are well below."""

_BUSY = timedelta(seconds=120)
"""The longest pause before a busy model is asked again, unless it names one itself."""


class AgentOptions(TypedDict):
    id: str
    id_reuse_policy: WorkflowIDReusePolicy
    parent_close_policy: ParentClosePolicy
    static_summary: str


def await_slot() -> ActivityOptions:
    """Each attempt asks once; those that are told to wait leave nothing in the history. It may take days."""
    return {
        "task_queue": names.MAKING_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=0.5), maximum_interval=timedelta(seconds=5)),
        "summary": "wait for a turn",
    }


def task_note(summary: str) -> LocalOptions:
    """Writes by derived keys; tried until the database is there."""
    return {
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10)),
        "summary": summary,
    }


def find_host(host: str) -> LocalOptions:
    """Asks the database, until that is there."""
    return task_note(f"is {host} alive?")


def making(slot: Slot, summary: str) -> ActivityOptions:
    """Every step may be repeated, and goes on from what is there. What is the task's fault is an answer; the rest is ours, and tried again.

    A cancelled step is waited for: what it holds is to be gone before anybody clears up behind it. A step that no worker takes in
    time fails, whichever attempt it is: then we ask whether the host is alive.
    """
    return {
        "task_queue": step_names.making_queue(slot.host),
        "schedule_to_start_timeout": timedelta(seconds=slot.patience_s),
        "start_to_close_timeout": _LONGEST,
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30), maximum_attempts=10),
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": summary,
    }


def clearing(slot: Slot, looks: int) -> ActivityOptions:
    """`looks`: how often the host was asked for before."""
    patience = min(timedelta(seconds=slot.patience_s), _CLEARING) * 2**looks
    return {**making(slot, "clear up"), "schedule_to_start_timeout": patience}


def ask_model(slot: Slot, turn: int, over: timedelta) -> ActivityOptions:
    """A busy model is asked again until the agent's own time is `over`; one that refuses is not."""
    return {
        **making(slot, f"turn {turn}"),
        "schedule_to_close_timeout": over,
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=_BUSY),
    }


def use_tool(slot: Slot, summary: str) -> ActivityOptions:
    """What came of it is written down before it is told, so that a repeated attempt finds it."""
    return making(slot, summary)


def coding_agent(task_id: str) -> AgentOptions:
    """One conversation of a task. The next round has the id of the one that ended."""
    return {
        "id": names.coding_id(task_id),
        "id_reuse_policy": WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        "parent_close_policy": ParentClosePolicy.REQUEST_CANCEL,
        "static_summary": f"the agent of {task_id}",
    }
