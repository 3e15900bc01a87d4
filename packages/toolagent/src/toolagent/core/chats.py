"""Ids of messages and conversations of chats."""

import hashlib

from toolagent.core.digests import digest_of

__all__ = ["CHAT_CLOSED", "CONVERSATION_PREFIX", "chat_key", "conversation_of", "message_id_for", "task_message_id"]

CHAT_CLOSED = "The chat was closed before the answer was made."
CONVERSATION_PREFIX = "chat:"
"""Begins the ids of conversations with a model about a message of a chat."""


def message_id_for(chat_id: str, key: str) -> str:
    """The id of the message with this idempotency key."""
    return f"msg-{digest_of(chat_id, key)[:32]}"


def task_message_id(task_id: str) -> str:
    """The id of the message that a chat says by itself when this task has ended."""
    return f"task-{task_id}"


def chat_key(chat_id: str) -> str:
    """A short form of the id of a chat: 32 hex digits."""
    return hashlib.sha256(chat_id.encode()).hexdigest()[:32]


def conversation_of(key: str, number: int) -> str:
    """The id of the conversation with the model about the message with this number. `key`: the `chat_key` of the chat."""
    return f"{CONVERSATION_PREFIX}{key}:{number}"
