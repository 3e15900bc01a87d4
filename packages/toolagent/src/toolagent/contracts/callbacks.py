"""Callbacks: HTTP requests at the end of a call or a batch."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, JsonValue, WithJsonSchema

from toolagent.contracts.contract import Contract

__all__ = ["Callback", "CallbackEnd", "CallbackNote", "CallbackState", "CallbackUrl", "CallbackView"]

_LONGEST = 2048
_ADDRESS = r"^https?://[^\s\x00-\x1f\x7f]+$"


def _web_address(url: str) -> str:
    if len(url) > _LONGEST or re.fullmatch(_ADDRESS, url) is None:
        raise ValueError(f"It must begin with http:// or https://, and have no blanks and at most {_LONGEST} characters.")
    return url


CallbackUrl = Annotated[str, AfterValidator(_web_address), WithJsonSchema({"type": "string", "pattern": _ADDRESS, "maxLength": _LONGEST})]


class Callback(Contract):
    """A callback to deliver. `event_id` is the same in every attempt."""

    task_id: str
    event_id: str
    type: str
    """`call.ended` or `batch.ended`."""
    url: CallbackUrl
    at: datetime
    tool_id: str = ""
    data: JsonValue


class CallbackState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class CallbackEnd(Contract):
    """How the delivery ended. `status_code` is that of the last answer, if any."""

    state: CallbackState
    attempts: int = 0
    status_code: int | None = None
    reason: str = ""


class CallbackNote(Contract):
    """The record of an ended delivery. It has only the origin of the URL, because the rest may hold a secret."""

    task_id: str
    tool_id: str
    event_id: str
    origin: str
    end: CallbackEnd


class CallbackView(CallbackEnd):
    """The state of a delivery. `origin` is scheme, host and port of the URL; `reason` says why the last attempt failed."""

    event_id: str = ""
    origin: str = ""
