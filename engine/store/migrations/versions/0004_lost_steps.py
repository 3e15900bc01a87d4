"""Steps of calls in which a worker died or froze."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lost_steps",
        sa.Column("step", sa.String(length=200), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("lost_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("step", name=op.f("pk_lost_steps")),
    )


def downgrade() -> None:
    op.drop_table("lost_steps")
