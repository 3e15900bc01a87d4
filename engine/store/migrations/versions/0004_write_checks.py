"""What is written to see whether the database can be written."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "write_checks",
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("slot", name=op.f("pk_write_checks")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute('ALTER TABLE write_checks ALTER COLUMN at TYPE VARCHAR(32) COLLATE "C"')


def downgrade() -> None:
    op.drop_table("write_checks")
