"""Repairs that a tool's failing calls have opened, inputs that end a tool's process, and which calls failed lately."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_WATCHED = {"production_repairs": "", "poisonous_inputs": "WHEN ({row}.quarantined_at IS NOT NULL)"}
"""Tables, and which of their rows calls have to know of."""

_CHANGES = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}
_COUNT = "UPDATE catalog_state SET number = number + 1"
_TEXTS = {
    "production_repairs": {
        "tool_id": 128,
        "version": 64,
        "task_id": 32,
        "meanwhile": 16,
        "previous": 64,
        "opened_at": 32,
        "ended_at": 32,
        "outcome": 16,
    },
    "poisonous_inputs": {"tool_id": 128, "version": 64, "input": 64, "first_at": 32, "quarantined_at": 32},
}
_FAILED = sa.text("error_type IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "production_repairs",
        sa.Column("tool_id", sa.String(length=128), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("meanwhile", sa.String(length=16), nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=True),
        sa.Column("request", sa.Text(), nullable=True),
        sa.Column("opened_at", sa.String(length=32), nullable=False),
        sa.Column("ended_at", sa.String(length=32), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.PrimaryKeyConstraint("tool_id", "version", "attempt", name=op.f("pk_production_repairs")),
    )
    op.create_index("ix_production_repairs_task_id", "production_repairs", ["task_id"])
    op.create_table(
        "poisonous_inputs",
        sa.Column("tool_id", sa.String(length=128), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("input", sa.String(length=64), nullable=False),
        sa.Column("crashes", sa.Text(), nullable=False),
        sa.Column("params", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("first_at", sa.String(length=32), nullable=False),
        sa.Column("quarantined_at", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("tool_id", "version", "input", name=op.f("pk_poisonous_inputs")),
    )
    op.create_index("ix_calls_failed_at", "calls", ["created_at"], sqlite_where=_FAILED, postgresql_where=_FAILED)
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    if is_postgresql:
        for table, columns in _TEXTS.items():
            for column, length in columns.items():
                op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR({length}) COLLATE "C"')
    # As those of the catalog: calls remember what they have read until the number changes.
    then = "EXECUTE FUNCTION count_catalog_change()" if is_postgresql else f"BEGIN {_COUNT}; END"
    for table, when in _WATCHED.items():
        for change, row in _CHANGES.items():
            name = f"{table}_{change.lower()}_counted"
            op.execute(f"CREATE TRIGGER {name} AFTER {change} ON {table} FOR EACH ROW {when.format(row=row)} {then}")


def downgrade() -> None:
    op.drop_index("ix_calls_failed_at", "calls")
    for table in _WATCHED:
        op.drop_table(table)
