"""MCP servers whose tools are in the catalog."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "mcp_servers",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_mcp_servers")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute('ALTER TABLE mcp_servers ALTER COLUMN name TYPE VARCHAR(64) COLLATE "C"')


def downgrade() -> None:
    op.drop_table("mcp_servers")
