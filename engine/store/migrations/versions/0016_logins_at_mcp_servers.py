"""Logins at MCP servers."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "mcp_logins",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=True),
        sa.Column("required_at", sa.String(length=32), nullable=True),
        sa.Column("scope", sa.Text(), nullable=True),
        sa.Column("leased_until", sa.String(length=32), nullable=True),
        sa.Column("state", sa.String(length=64), nullable=True),
        sa.Column("login_url", sa.Text(), nullable=True),
        sa.Column("login_until", sa.String(length=32), nullable=True),
        sa.Column("visit", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_mcp_logins")),
    )
    op.create_index("ix_mcp_logins_state", "mcp_logins", ["state"])
    if op.get_bind().dialect.name == "postgresql":
        for column, length in (("name", 64), ("required_at", 32), ("leased_until", 32), ("state", 64), ("login_until", 32)):
            op.execute(f'ALTER TABLE mcp_logins ALTER COLUMN {column} TYPE VARCHAR({length}) COLLATE "C"')


def downgrade() -> None:
    op.drop_table("mcp_logins")
