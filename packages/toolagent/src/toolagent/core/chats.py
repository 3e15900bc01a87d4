"""How messages of a chat are named: once by their key, and in the store."""

import hashlib
import json

__all__ = ["CHAT_CLOSED", "CONVERSATION_PREFIX", "chat_key", "conversation_of", "message_id_for", "task_message_id"]

CHAT_CLOSED = "The chat was closed before the answer was made."
CONVERSATION_PREFIX = "chat:"
"""Of conversations with a model that are about a message of a chat."""


def message_id_for(chat_id: str, key: str) -> str:
    """Of the message with this idempotency key."""
    return f"msg-{hashlib.sha256(json.dumps([chat_id, key]).encode()).hexdigest()[:32]}"


def task_message_id(task_id: str) -> str:
    """Of what a chat says by itself when this task has ended."""
    return f"task-{task_id}"


def chat_key(chat_id: str) -> str:
    """What stands for the id of a chat in names that are short and plain. 32 hex digits."""
    return hashlib.sha256(chat_id.encode()).hexdigest()[:32]


def conversation_of(key: str, number: int) -> str:
    """What the model says and does about the message with this number. `key`: that of the row of the chat."""
    return f"{CONVERSATION_PREFIX}{key}:{number}"
