"""Conversations: messages, answers, and events while an answer is made."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from toolagent.contracts.contract import Contract

__all__ = [
    "CHAT_ID_PATTERN",
    "AnsweredBy",
    "ChatEvent",
    "ChatEventKind",
    "ChatId",
    "ChatListing",
    "ChatMessage",
    "ChatReply",
    "ChatRole",
    "ChatTurn",
    "ChatView",
    "Chunk",
    "ListedChat",
]

CHAT_ID_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]{1,200}$"
ChatId = Annotated[str, StringConstraints(pattern=CHAT_ID_PATTERN)]
"""1 to 200 characters, except control characters."""


class ChatRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class AnsweredBy(StrEnum):
    """Who wrote a turn of the assistant."""

    MODEL = "model"
    RULES = "rules"


class ChatMessage(Contract):
    """A message to a chat. The same `message_id` again is the same message."""

    chat_id: ChatId
    message: str
    message_id: Annotated[str, Field(min_length=1, max_length=100)]


class ChatReply(Contract):
    """The answer to one message."""

    response: str
    chat_id: str
    message_id: str
    tools: tuple[str, ...] = ()
    """The ids of tools that the answer mentions."""
    task_ids: tuple[str, ...] = ()
    """Tasks that were started for it."""
    answered_by: AnsweredBy = AnsweredBy.MODEL
    error: str = ""
    """Why there is no proper answer; empty if there is one."""


class ChatTurn(Contract):
    """One message or answer. `number` counts both, from 1.

    An answer has the `message_id` of its message. An announcement of an ended task has `task-<task id>`.
    """

    number: int
    role: ChatRole
    text: str
    at: datetime
    message_id: str
    tools: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    answered_by: AnsweredBy | None = None
    error: str = ""


class ListedChat(Contract):
    """`turn_count` counts both sides. `is_open`: its workflow runs. After a long silence, the next message starts it again."""

    chat_id: str
    turn_count: int
    is_open: bool
    created_at: datetime
    updated_at: datetime


class ChatView(ListedChat):
    """`turns` are one page, in order. `before` is the number to ask for the page before it; null if there is none."""

    turns: tuple[ChatTurn, ...]
    before: int | None = None


class ChatListing(Contract):
    """Chats, the last used first. `next` asks for the page after this one."""

    chats: tuple[ListedChat, ...]
    next: str | None = None


class ChatEventKind(StrEnum):
    """Kinds of events in a chat."""

    MESSAGE = "message"
    """A new `ChatTurn`, of either side."""
    CHUNK = "chunk"
    """A part of an unfinished answer: a `Chunk`."""
    DONE = "done"
    """The `ChatReply` to a message."""


class Chunk(Contract):
    """`text`: a piece of the model's text; `tool_use` and `tool_result`: a function that it uses, and the outcome; `restart`:
    the answer broke off and is written again, so the text since the last function does not count."""

    type: Literal["text", "tool_use", "tool_result", "restart"]
    data: JsonValue = None


class ChatEvent(Contract):
    """One event. Positions grow; old chunks are removed later."""

    position: int
    at: datetime
    event: ChatEventKind
    message_id: str
    data: JsonValue
