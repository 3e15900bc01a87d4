"""Messages between agents over an IM server: one JSON object in each WebSocket frame."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from toolagent.contracts.contract import Contract, JsonSchema

__all__ = ["ImFunctionListing", "ImFunctionOffer", "ImMessage", "ImType"]


class ImType(StrEnum):
    CHAT = "chat"
    """Wants an answer."""
    REPLY = "reply"
    """Is the answer."""
    NOTICE = "notice"
    """Is said by an agent by itself; wants no answer."""
    ACK = "ack"
    """Says that a message is kept."""
    ERROR = "error"
    """Says why a message is refused."""


_Name = Annotated[str, Field(min_length=1, max_length=200)]


class ImMessage(Contract):
    """An `ack` or `error` has the id of the message it is about, and goes from that message's receiver to its sender."""

    id: _Name
    """Chosen by the sender, who sends the message again under the same id until it is acknowledged or refused."""
    sender: _Name
    """Contact id."""
    receiver: _Name
    """Contact id."""
    content: str = ""
    type: _Name = ImType.CHAT.value
    """One of `ImType`; a receiver passes over those that it does not know."""
    sender_chat_id: str | None = None
    """The sender's chat; an answer names it in `receiver_chat_id`."""
    receiver_chat_id: str | None = None
    """The receiver's chat; without one a `chat` is for all chats of the receiver."""
    timestamp: datetime | None = None


class ImFunctionOffer(Contract):
    """What an agent may do with the windows, as it is shown to a model."""

    name: str
    description: str
    input_schema: JsonSchema


class ImFunctionListing(Contract):
    functions: tuple[ImFunctionOffer, ...]
