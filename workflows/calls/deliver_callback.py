"""One callback: sent until it is accepted, refused for good, or too late; then recorded."""

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ActivityError

from toolagent.client import names
from toolagent.contracts.callbacks import Callback, CallbackEnd, CallbackNote, CallbackState
from toolagent.core.calls.callbacks import origin_of
from toolagent_service import stubs
from workflows import options
from workflows.inputs import input_of


@workflow.defn(name=names.DELIVER_CALLBACK_WORKFLOW)
class DeliverCallback:
    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> CallbackEnd:
        """Takes a `Callback` as plain JSON; invalid input fails at once. With a typed argument it would be retried for ever."""
        callback = input_of(Callback, given, surplus)
        end = await _delivered(callback)
        note = CallbackNote(
            task_id=callback.task_id, tool_id=callback.tool_id, event_id=callback.event_id, origin=origin_of(callback.url), end=end
        )
        await workflow.execute_activity(stubs.note_callback, note, **options.note_callback())
        return end


async def _delivered(callback: Callback) -> CallbackEnd:
    try:
        return await workflow.execute_activity(stubs.deliver_callback, callback, **options.deliver_callback(callback.task_id))
    except ActivityError as error:
        return CallbackEnd(state=CallbackState.FAILED, reason=f"Given up after {options.CALLBACK_PATIENCE}: {error.cause or error}")
