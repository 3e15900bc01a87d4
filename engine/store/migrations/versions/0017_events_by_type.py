"""Alerts are found without a look at all other events."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_events_type_at", "events", ["event_type", "at"])


def downgrade() -> None:
    op.drop_index("ix_events_type_at", "events")
