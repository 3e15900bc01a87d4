"""How often a call was sent, steps of calls in which a worker died or froze, and what is written to see whether anything can be."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TIMES = (("lost_steps", "lost_at"), ("write_checks", "at"))


def upgrade() -> None:
    with op.batch_alter_table("calls", schema=None) as batch_op:
        batch_op.add_column(sa.Column("sends", sa.Integer(), nullable=False, server_default="0"))
    # Those that are on their way now; nothing asks about the others.
    op.execute("UPDATE calls SET sends = 1 WHERE sent_at IS NOT NULL AND settled_at IS NULL")
    op.create_table(
        "lost_steps",
        sa.Column("step", sa.String(length=200), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("lost_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("step", name=op.f("pk_lost_steps")),
    )
    op.create_table(
        "write_checks",
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("slot", name=op.f("pk_write_checks")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute('ALTER TABLE lost_steps ALTER COLUMN step TYPE VARCHAR(200) COLLATE "C"')
        for table, column in _TIMES:
            op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR(32) COLLATE "C"')


def downgrade() -> None:
    op.drop_table("write_checks")
    op.drop_table("lost_steps")
    with op.batch_alter_table("calls", schema=None) as batch_op:
        batch_op.drop_column("sends")
