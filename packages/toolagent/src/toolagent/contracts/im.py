"""Messages between agents over an IM server: one JSON object in each WebSocket frame."""

from datetime import datetime
from enum import StrEnum

from toolagent.contracts.contract import Contract, JsonSchema
from toolagent.contracts.identifiers import ShortText

__all__ = ["ImFunctionListing", "ImFunctionOffer", "ImMessage", "ImType"]


class ImType(StrEnum):
    CHAT = "chat"
    """A message that wants an answer."""
    REPLY = "reply"
    """The answer to a message."""
    NOTICE = "notice"
    """A message of an agent that wants no answer."""
    ACK = "ack"
    """Acknowledges that a message is stored."""
    ERROR = "error"
    """Says why a message was refused."""


class ImMessage(Contract):
    """An `ack` or `error` has the id of the message it refers to, and goes from its receiver to its sender."""

    id: ShortText
    """Chosen by the sender, which repeats the message under the same id until it is acknowledged or refused."""
    sender: ShortText
    """Contact id."""
    receiver: ShortText
    """Contact id."""
    content: str = ""
    type: ShortText = ImType.CHAT.value
    """One of `ImType`. A receiver skips unknown types."""
    sender_chat_id: str | None = None
    """The sender's chat; an answer names it in `receiver_chat_id`."""
    receiver_chat_id: str | None = None
    """The receiver's chat; unset: all its chats."""
    timestamp: datetime | None = None


class ImFunctionOffer(Contract):
    """A function of the IM windows, as a model sees it."""

    name: str
    description: str
    input_schema: JsonSchema


class ImFunctionListing(Contract):
    functions: tuple[ImFunctionOffer, ...]
