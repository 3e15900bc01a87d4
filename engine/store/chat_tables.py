"""The tables of conversations. What a model says and does about a message is in those of agents."""

from sqlalchemy import Boolean, Column, Index, Integer, String, Table, Text

from engine.store.tables import METADATA

_CHAT_ID = String(200)
_TIME = String(32)

chats = Table(
    "chats",
    METADATA,
    Column("chat_id", _CHAT_ID, primary_key=True),
    # Random; what its conversations with the model are named by: see `toolagent.core.chats`.
    Column("key", String(32), nullable=False),
    # Turns of both sides. The number of the last one.
    Column("turn_count", Integer, nullable=False),
    # While its workflow lives, as far as that could say it.
    Column("is_open", Boolean, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("updated_at", _TIME, nullable=False),
    Index("ix_chats_key", "key", unique=True),
    Index("ix_chats_updated_at", "updated_at"),
)

chat_turns = Table(
    "chat_turns",
    METADATA,
    Column("chat_id", _CHAT_ID, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("role", String(16), nullable=False),
    Column("message_id", String(100), nullable=False),
    Column("text", Text, nullable=False),
    Column("at", _TIME, nullable=False),
    Column("tools", Text, nullable=False),
    Column("task_ids", Text, nullable=False),
    Column("answered_by", String(16)),
    Column("error", Text, nullable=False),
    Index("ix_chat_turns_message_id", "chat_id", "message_id", "role", unique=True),
)

chat_events = Table(
    "chat_events",
    METADATA,
    Column("chat_id", _CHAT_ID, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("at", _TIME, nullable=False),
    Column("event", String(16), nullable=False),
    Column("message_id", String(100), nullable=False),
    Column("data", Text, nullable=False),
)
