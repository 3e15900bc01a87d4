"""What calls say to their callers while they go on, and what they ask."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_TEXTS = {"call_id": 100, "kind": 16, "at": 32, "answered_at": 32}


def upgrade() -> None:
    op.create_table(
        "call_messages",
        sa.Column("call_id", sa.String(length=100), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.Column("answered_at", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("call_id", "position", name=op.f("pk_call_messages")),
    )
    op.create_index("ix_call_messages_at", "call_messages", ["at"])
    if op.get_bind().dialect.name == "postgresql":
        for column, length in _TEXTS.items():
            op.execute(f'ALTER TABLE call_messages ALTER COLUMN {column} TYPE VARCHAR({length}) COLLATE "C"')


def downgrade() -> None:
    op.drop_table("call_messages")
