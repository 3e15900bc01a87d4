"""The paths of a delivery, and of calls and batches with a callback."""

from collections.abc import Mapping

from pydantic import JsonValue
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from tests.workflows.ends import Walk
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.contracts.callbacks import Callback, CallbackEnd, CallbackNote, CallbackState
from toolagent_service import step_names

__all__ = ["PATHS", "Deliveries"]


class Deliveries:
    """Receivers by the tool of the call: `taken` accepts the first post, `slow` the second, `closed` none."""

    @activity.defn(name=step_names.DELIVER_CALLBACK)
    async def deliver_callback(self, callback: Callback) -> CallbackEnd:
        attempt = activity.info().attempt
        if callback.tool_id != "closed" and attempt > (callback.tool_id == "slow"):
            return CallbackEnd(state=CallbackState.DELIVERED, attempts=attempt, status_code=204)
        raise ApplicationError(
            "The receiver answered 500.",
            type=step_names.CALLBACK_NOT_TAKEN,
            category=ApplicationErrorCategory.BENIGN,
            non_retryable=callback.tool_id == "closed",
        )

    @activity.defn(name=step_names.NOTE_CALLBACK)
    async def note_callback(self, _note: CallbackNote) -> None:
        return


async def _played(stage: Stage, tool_id: str) -> AnyHandle:
    task_id = f"call-{stage.queue}"
    callback: JsonValue = {
        "task_id": task_id,
        "event_id": f"{task_id}:ended",
        "type": "call.ended",
        "url": "https://example.com/told",
        "at": "2026-03-26T10:30:00Z",
        "tool_id": tool_id,
        "data": {"status": "success"},
    }
    async with stage.workers([]):
        handle = await stage.start(names.DELIVER_CALLBACK_WORKFLOW, callback, workflow_id=f"callback-{task_id}")
        await handle.result()
    return handle


async def delivered(stage: Stage) -> AnyHandle:
    return await _played(stage, "taken")


async def retried(stage: Stage) -> AnyHandle:
    return await _played(stage, "slow")


async def given_up(stage: Stage) -> AnyHandle:
    return await _played(stage, "closed")


PATHS: Mapping[str, Walk] = {
    "delivered": Walk(delivered, "delivered"),
    "retried": Walk(retried, "delivered"),
    "given-up": Walk(given_up, "failed Given up after 1 day, 0:00:00: callback_not_taken: The"),
}
