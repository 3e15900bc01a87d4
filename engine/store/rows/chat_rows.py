"""Conversion between rows of the chat tables and contracts."""

import json

from pydantic import JsonValue
from sqlalchemy import RowMapping

from engine.store.clock import timestamp
from toolagent.contracts.chats import ChatEvent, ChatEventKind, ChatReply, ChatTurn, ListedChat
from toolagent.core.texts import well_formed


def turn_row(chat_id: str, turn: ChatTurn) -> dict[str, object]:
    return {
        "chat_id": chat_id,
        "number": turn.number,
        "role": turn.role.value,
        "message_id": turn.message_id,
        "text": well_formed(turn.text),
        "at": timestamp(turn.at),
        "tools": json.dumps(turn.tools),
        "task_ids": json.dumps(turn.task_ids),
        "answered_by": turn.answered_by.value if turn.answered_by else None,
        "error": well_formed(turn.error),
    }


def turn_of(row: RowMapping) -> ChatTurn:
    return ChatTurn.model_validate({**row, "tools": json.loads(row["tools"]), "task_ids": json.loads(row["task_ids"])})


def event_row(chat_id: str, at: str, event: ChatEventKind, message_id: str, data: JsonValue) -> dict[str, object]:
    """The row without its position. `at` is a timestamp."""
    # ASCII escapes: databases take neither NUL nor lone surrogates.
    told = json.dumps(data)
    return {
        "chat_id": chat_id,
        "at": at,
        "event": event.value,
        "message_id": message_id,
        "data": told,
    }


def event_of(row: RowMapping) -> ChatEvent:
    return ChatEvent.model_validate({**row, "data": json.loads(row["data"])})


def listed_of(row: RowMapping) -> ListedChat:
    return ListedChat.model_validate({**row, "is_open": bool(row["is_open"])})


def reply_of(chat_id: str, turn: ChatTurn) -> ChatReply:
    """The reply for a turn of the assistant."""
    return ChatReply.model_validate(
        {"response": turn.text, "chat_id": chat_id, **turn.model_dump(exclude={"number", "role", "text", "at"})}
    )
