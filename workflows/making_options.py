"""Time-outs and retries of the steps that make tools, each with its reason."""

from datetime import timedelta
from typing import TypedDict

from temporalio.common import WorkflowIDReusePolicy
from temporalio.workflow import ActivityCancellationType, ParentClosePolicy

from toolagent.client import names
from toolagent_service import step_names
from toolagent_service.contracts.making_steps import Slot
from workflows.options import ActivityOptions, LocalOptions, retry

_HEARTBEAT = timedelta(seconds=15)
"""A killed worker is noticed after this time."""

_CLEARING = timedelta(seconds=15)
"""How long a host may take to begin clearing before we ask whether it is alive; doubled each time. Clients wait for the end."""

_LONGEST = timedelta(hours=2)
"""The limit of a step, such as building an image, or a gate with a slow tool. The step's own limits are far below."""

_BUSY_S = 120
"""The longest pause before a busy model is asked again, unless the model names one."""


class AgentOptions(TypedDict):
    id: str
    id_reuse_policy: WorkflowIDReusePolicy
    parent_close_policy: ParentClosePolicy
    static_summary: str


def await_slot() -> ActivityOptions:
    """Each attempt asks once. Attempts that must wait are not in the history. It may take days."""
    return {
        "task_queue": names.MAKING_QUEUE,
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": retry(0.5, 5),
        "summary": "wait for a turn",
    }


def task_note(summary: str) -> LocalOptions:
    """Writes by derived keys; retried until the database answers."""
    return {
        "start_to_close_timeout": timedelta(seconds=30),
        "retry_policy": retry(0.2, 10),
        "summary": summary,
    }


def find_host(host: str) -> LocalOptions:
    """Asks the database, until it answers."""
    return task_note(f"is {host} alive?")


def making(slot: Slot, summary: str) -> ActivityOptions:
    """Steps are idempotent, and continue from the files there. Faults of the task are results; other faults are ours, and retried.

    A cancelled step is waited for, so that it is over before its files are cleared. If no worker takes an attempt in time, the step fails,
    and we ask whether the host is alive.
    """
    return {
        "task_queue": step_names.making_queue(slot.host),
        "schedule_to_start_timeout": timedelta(seconds=slot.patience_s),
        "start_to_close_timeout": _LONGEST,
        "heartbeat_timeout": _HEARTBEAT,
        "retry_policy": retry(1, 30, attempts=10),
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        "summary": summary,
    }


def clearing(slot: Slot, looks: int) -> ActivityOptions:
    """`looks`: how often the host was looked for before."""
    patience = min(timedelta(seconds=slot.patience_s), _CLEARING) * 2**looks
    return {**making(slot, "clear up"), "schedule_to_start_timeout": patience}


def ask_model(slot: Slot, turn: int, over: timedelta) -> ActivityOptions:
    """A busy model is asked again until the agent's time is `over`; one that refuses is not."""
    return {
        **making(slot, f"turn {turn}"),
        "schedule_to_close_timeout": over,
        "retry_policy": retry(1, _BUSY_S),
    }


def use_tool(slot: Slot, summary: str) -> ActivityOptions:
    """The result is recorded before it is returned, so that a repeated attempt finds it."""
    return making(slot, summary)


def coding_agent(task_id: str) -> AgentOptions:
    """A round of a task's agent. The next round has the same id."""
    return {
        "id": names.coding_id(task_id),
        "id_reuse_policy": WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        "parent_close_policy": ParentClosePolicy.REQUEST_CANCEL,
        "static_summary": f"the agent of {task_id}",
    }
