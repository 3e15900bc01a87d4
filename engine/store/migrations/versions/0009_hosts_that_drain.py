"""Hosts that take nothing more, and the calls under way on each."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_MARKS = ("draining_at", "drained_of")


def upgrade() -> None:
    for column in _MARKS:
        op.add_column("hosts", sa.Column(column, sa.String(length=32), nullable=True))
        if op.get_bind().dialect.name == "postgresql":
            op.execute(f'ALTER TABLE hosts ALTER COLUMN {column} TYPE VARCHAR(32) COLLATE "C"')
    op.add_column("hosts", sa.Column("calls", sa.Text(), nullable=False, server_default="{}"))


def downgrade() -> None:
    with op.batch_alter_table("hosts") as hosts:
        for column in ("calls", *_MARKS):
            hosts.drop_column(column)
