"""Conversations: what is said in them, and what happens while an answer is made."""

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
"""1 to 200 characters of any kind but control characters."""


class ChatRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class AnsweredBy(StrEnum):
    """Who wrote a turn of the assistant."""

    MODEL = "model"
    RULES = "rules"


class ChatMessage(Contract):
    """What is said to a chat. The same `message_id` again is the same message."""

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
    """Tasks that were begun for it."""
    answered_by: AnsweredBy = AnsweredBy.MODEL
    error: str = ""
    """Why there is no proper answer; empty: there is one."""


class ChatTurn(Contract):
    """One thing that was said. `number` counts from 1, over both sides.

    An answer has the `message_id` of its message. What the chat says by itself, when a task has ended, has `task-<task id>`.
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
    """`turn_count` counts both sides. `is_open`: its workflow lives; a chat that has been silent for long is opened by the next message."""

    chat_id: str
    turn_count: int
    is_open: bool
    created_at: datetime
    updated_at: datetime


class ChatView(ListedChat):
    """`turns` are a page, in order; `before` is the number to ask the page before it with, null where there is none."""

    turns: tuple[ChatTurn, ...]
    before: int | None = None


class ChatListing(Contract):
    """The one that was spoken to last comes first. `next` asks for the page after this one."""

    chats: tuple[ListedChat, ...]
    next: str | None = None


class ChatEventKind(StrEnum):
    """What happens in a chat."""

    MESSAGE = "message"
    """Something was said: a `ChatTurn`, of either side."""
    CHUNK = "chunk"
    """A part of an answer that is being made: a `Chunk`."""
    DONE = "done"
    """A message is answered: its `ChatReply`."""


class Chunk(Contract):
    """`text`: a piece of what the model writes; `tool_use` and `tool_result`: a function that it uses, and what came of that; `restart`:
    the answer broke off and is written again, so the text since the last function does not count."""

    type: Literal["text", "tool_use", "tool_result", "restart"]
    data: JsonValue = None


class ChatEvent(Contract):
    """One of them. Positions grow; those of old chunks are missing later."""

    position: int
    at: datetime
    event: ChatEventKind
    message_id: str
    data: JsonValue
