"""Sessions of MCP clients."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "mcp_sessions",
        sa.Column("session_id", sa.String(length=64), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.String(length=32), nullable=False),
        sa.Column("seen_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_mcp_sessions")),
    )
    op.create_index("ix_mcp_sessions_seen_at", "mcp_sessions", ["seen_at"])
    op.create_table(
        "mcp_requests",
        sa.Column("session_id", sa.String(length=64), nullable=False),
        sa.Column("request_id", sa.String(length=200), nullable=False),
        sa.Column("call_id", sa.String(length=100), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "request_id", name=op.f("pk_mcp_requests")),
    )
    if op.get_bind().dialect.name == "postgresql":
        for table, column, length in _SORTED:
            op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR({length}) COLLATE "C"')


_SORTED = (
    ("mcp_sessions", "session_id", 64),
    ("mcp_sessions", "opened_at", 32),
    ("mcp_sessions", "seen_at", 32),
    ("mcp_requests", "session_id", 64),
    ("mcp_requests", "request_id", 200),
    ("mcp_requests", "call_id", 100),
)


def downgrade() -> None:
    op.drop_table("mcp_requests")
    op.drop_table("mcp_sessions")
