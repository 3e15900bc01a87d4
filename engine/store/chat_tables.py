"""The tables of chats.

What a model says and does about a message is in the tables of agents.
"""

from sqlalchemy import Boolean, Column, Index, Integer, String, Table, Text

from engine.store.tables import METADATA, key, required

_CHAT_ID = String(200)
_TIME = String(32)

chats = Table(
    "chats",
    METADATA,
    key("chat_id", _CHAT_ID),
    # Random. Names its conversations with the model: see `toolagent.core.chats`.
    required("key", String(32)),
    # Turns of both sides; the number of the last turn.
    required("turn_count", Integer),
    # True while its workflow runs, as far as the workflow could report.
    required("is_open", Boolean),
    required("created_at", _TIME),
    required("updated_at", _TIME),
    Index("ix_chats_key", "key", unique=True),
    Index("ix_chats_updated_at", "updated_at"),
)

chat_turns = Table(
    "chat_turns",
    METADATA,
    key("chat_id", _CHAT_ID),
    key("number", Integer),
    required("role", String(16)),
    required("message_id", String(100)),
    required("text", Text),
    required("at", _TIME),
    required("tools", Text),
    required("task_ids", Text),
    Column("answered_by", String(16)),
    required("error", Text),
    Index("ix_chat_turns_message_id", "chat_id", "message_id", "role", unique=True),
)

chat_events = Table(
    "chat_events",
    METADATA,
    key("chat_id", _CHAT_ID),
    key("position", Integer),
    required("at", _TIME),
    required("event", String(16)),
    required("message_id", String(100)),
    required("data", Text),
)
