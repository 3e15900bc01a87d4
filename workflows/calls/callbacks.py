"""Starts the delivery of a callback as a workflow of its own, so that nothing waits for the receiver."""

import asyncio

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from toolagent.client import names
from toolagent.contracts.callbacks import Callback
from toolagent.core.calls.callbacks import delivery_id


async def announce(callback: Callback | None) -> None:
    """Returns when the delivery is started. A cancellation does not stop it, because it announces the end of the call."""
    if callback is None:
        return
    # Cancelling the workflow cancels its main task only.
    begun = asyncio.create_task(_begin(callback))
    while not begun.done():
        try:
            await workflow.wait([begun])
        except asyncio.CancelledError:
            continue
    begun.result()


async def _begin(callback: Callback) -> None:
    try:
        await workflow.start_child_workflow(
            names.DELIVER_CALLBACK_WORKFLOW,
            callback,
            id=delivery_id(callback.event_id),
            task_queue=names.TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
            static_summary=f"tell of {callback.task_id}",
        )
    except WorkflowAlreadyStartedError:
        return  # an earlier run of this workflow has begun it
