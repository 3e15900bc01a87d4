"""Telling somebody by HTTP that a call or a batch has ended."""

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
    """What is to be delivered. `event_id` stays the same however often it is sent."""

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
    """How the delivery ended. `status_code` is the last answer's, if there was one."""

    state: CallbackState
    attempts: int = 0
    status_code: int | None = None
    reason: str = ""


class CallbackNote(Contract):
    """What is written down of a delivery that has ended: of the URL only where it leads to, for the rest may hold a secret."""

    task_id: str
    tool_id: str
    event_id: str
    origin: str
    end: CallbackEnd


class CallbackView(CallbackEnd):
    """How far a delivery is. `origin` is scheme, host and port of the URL; `reason` why the last attempt failed."""

    event_id: str = ""
    origin: str = ""
