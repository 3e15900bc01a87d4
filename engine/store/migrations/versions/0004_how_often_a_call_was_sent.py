"""How often a call was sent."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("calls", schema=None) as batch_op:
        batch_op.add_column(sa.Column("sends", sa.Integer(), nullable=False, server_default="0"))
    # Those that are on their way now; of the others nobody asks.
    op.execute("UPDATE calls SET sends = 1 WHERE sent_at IS NOT NULL AND settled_at IS NULL")


def downgrade() -> None:
    with op.batch_alter_table("calls", schema=None) as batch_op:
        batch_op.drop_column("sends")
