"""Callbacks at the end of a call or batch, and their signatures (standardwebhooks.com)."""

import base64
import binascii
import hashlib
import hmac
from datetime import datetime
from urllib.parse import urlsplit

from toolagent.contracts.batches import BatchEnd, ToolBatch
from toolagent.contracts.callbacks import Callback, CallbackNote, CallbackState, CallbackView
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.records import Event, EventType
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, reason_of

__all__ = ["callback_event", "callback_of_batch", "callback_of_call", "delivery_id", "origin_of", "signatures", "view_of_event"]

_PREFIX = "whsec_"


def callback_of_call(call: ToolCall, result: ToolResult, at: datetime, run_id: str) -> Callback | None:
    """The callback of a call; None without a `callback_url`."""
    if call.callback_url is None:
        return None
    # A call that was refused because another call has its id must not look like the end of that other call.
    other = f":{run_id}" if reason_of(result) == IDEMPOTENCY_CONFLICT else ""
    return Callback(
        task_id=result.call_id,
        event_id=f"{result.call_id}:ended{other}",
        type="call.ended",
        url=call.callback_url,
        at=at,
        tool_id=call.tool_id,
        data=result.model_dump(mode="json"),
    )


def callback_of_batch(batch: ToolBatch, end: BatchEnd, at: datetime) -> Callback | None:
    """The callback of a batch, with ids and states of its calls; None without a `callback_url`. `/tasks/{call_id}` has the results."""
    if batch.callback_url is None:
        return None
    return Callback(
        task_id=end.batch_id,
        event_id=f"{end.batch_id}:ended",
        type="batch.ended",
        url=batch.callback_url,
        at=at,
        data=end.model_dump(mode="json"),
    )


def delivery_id(event_id: str) -> str:
    """The id of the workflow that delivers the callback."""
    return f"callback-{event_id.replace(':ended', '', 1)}"


def signatures(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature for each secret. Several secrets are separated by spaces.

    A secret `whsec_<base64>` is decoded, as in libraries for Standard Webhooks; any other is the key itself.
    """
    signed = f"{event_id}.{timestamp}.".encode() + body
    made = (hmac.new(_key(one), signed, hashlib.sha256).digest() for one in secret.split())
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in made)


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL; its path and query may hold a secret."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    except ValueError:
        return ""


def callback_event(note: CallbackNote, at: datetime) -> Event:
    """The event of a delivery; its id is derived, so a repetition is recorded once."""
    is_delivered = note.end.state is CallbackState.DELIVERED
    return Event(
        event_id=f"{note.event_id}:callback",
        event_type=EventType.CALLBACK_DELIVERED if is_delivered else EventType.CALLBACK_FAILED,
        tool_id=note.tool_id,
        call_id=note.task_id,
        at=at,
        details=CallbackView(event_id=note.event_id, origin=note.origin, **dict(note.end)).model_dump(mode="json"),
    )


def view_of_event(events: tuple[Event, ...]) -> CallbackView | None:
    """How a delivery ended, according to an event of the task."""
    kinds = {EventType.CALLBACK_DELIVERED, EventType.CALLBACK_FAILED}
    return next((CallbackView.model_validate(event.details) for event in events if event.event_type in kinds), None)


def _key(secret: str) -> bytes:
    if secret.startswith(_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            pass  # a plain text with this prefix
    return secret.encode()
