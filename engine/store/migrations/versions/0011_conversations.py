"""Conversations: their turns, and what happens while an answer is made."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_TEXTS = {
    "chats": {"chat_id": 200, "key": 32, "created_at": 32, "updated_at": 32},
    "chat_turns": {"chat_id": 200, "role": 16, "message_id": 100, "at": 32, "answered_by": 16},
    "chat_events": {"chat_id": 200, "at": 32, "event": 16, "message_id": 100},
}


def upgrade() -> None:
    op.create_table(
        "chats",
        sa.Column("chat_id", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("turn_count", sa.Integer(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("chat_id", name=op.f("pk_chats")),
    )
    op.create_table(
        "chat_turns",
        sa.Column("chat_id", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("message_id", sa.String(length=100), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.Column("tools", sa.Text(), nullable=False),
        sa.Column("task_ids", sa.Text(), nullable=False),
        sa.Column("answered_by", sa.String(length=16), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("chat_id", "number", name=op.f("pk_chat_turns")),
    )
    op.create_table(
        "chat_events",
        sa.Column("chat_id", sa.String(length=200), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("message_id", sa.String(length=100), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("chat_id", "position", name=op.f("pk_chat_events")),
    )
    if op.get_bind().dialect.name == "postgresql":
        for table, columns in _TEXTS.items():
            for column, length in columns.items():
                op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR({length}) COLLATE "C"')
    op.create_index("ix_chats_key", "chats", ["key"], unique=True)
    op.create_index("ix_chats_updated_at", "chats", ["updated_at"])
    op.create_index("ix_chat_turns_message_id", "chat_turns", ["chat_id", "message_id", "role"], unique=True)


def downgrade() -> None:
    for table in _TEXTS:
        op.drop_table(table)
