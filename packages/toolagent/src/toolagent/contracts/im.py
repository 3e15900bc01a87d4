"""Messages between agents over an IM server: one JSON object in each WebSocket frame."""

from datetime import datetime
from enum import StrEnum

from toolagent.contracts.contract import Contract, JsonSchema
from toolagent.contracts.identifiers import ShortText

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


class ImMessage(Contract):
    """An `ack` or `error` has the id of the message it is about, and goes from that message's receiver to its sender."""

    id: ShortText
    """Chosen by the sender, who sends the message again under the same id until it is acknowledged or refused."""
    sender: ShortText
    """Contact id."""
    receiver: ShortText
    """Contact id."""
    content: str = ""
    type: ShortText = ImType.CHAT.value
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
