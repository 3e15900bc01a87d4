"""Sessions of groups: what was launched, and whether it was stopped."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_TEXTS = {"session_id": 80, "group_id": 128, "state": 16, "opened_at": 32, "updated_at": 32, "ended_at": 32}


def upgrade() -> None:
    op.create_table(
        "group_sessions",
        sa.Column("session_id", sa.String(length=80), nullable=False),
        sa.Column("group_id", sa.String(length=128), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.Column("ended_at", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_group_sessions")),
    )
    op.create_index("ix_group_sessions_group_id", "group_sessions", ["group_id", "opened_at"])
    if op.get_bind().dialect.name == "postgresql":
        for column, length in _TEXTS.items():
            op.execute(f'ALTER TABLE group_sessions ALTER COLUMN {column} TYPE VARCHAR({length}) COLLATE "C"')
    living = sa.text("ended_at IS NULL")
    op.create_index("ix_group_sessions_living", "group_sessions", ["group_id"], sqlite_where=living, postgresql_where=living)


def downgrade() -> None:
    op.drop_index("ix_group_sessions_living", "group_sessions")
    op.drop_index("ix_group_sessions_group_id", "group_sessions")
    op.drop_table("group_sessions")
