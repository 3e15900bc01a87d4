"""One callback: sent until it is taken, refused for good, or too late; then written down."""

from pydantic import JsonValue, ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from toolagent.client import names, stubs
from toolagent.contracts.callbacks import Callback, CallbackEnd, CallbackNote, CallbackState
from toolagent.core.callbacks import origin_of
from workflows import options

__all__ = ["DeliverCallback"]


@workflow.defn(name=names.DELIVER_CALLBACK_WORKFLOW)
class DeliverCallback:
    @workflow.run
    async def run(self, given: JsonValue = None) -> CallbackEnd:
        """Takes a `Callback` as plain JSON; what is none fails at once, where a typed argument would be tried for ever."""
        try:
            callback = Callback.model_validate(given)
        except ValidationError as error:
            raise ApplicationError(f"The input is not a Callback: {error}", non_retryable=True) from error
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
