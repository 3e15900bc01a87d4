"""Calls that are accepted before a workflow has them, the front doors that have them, and a number that changes with the catalog."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_WATCHED = ("tools", "tool_versions", "sources")
_CHANGES = ("INSERT", "UPDATE", "DELETE")
_COUNT = "UPDATE catalog_state SET number = number + 1"
_TEXTS = {
    "claims": {"call_id": 100, "fingerprint": 64, "owner": 64, "cancelled_at": 32, "claimed_at": 32},
    "doors": {"door": 64, "host": 64, "started_at": 32, "seen_at": 32},
}


def upgrade() -> None:
    op.create_table(
        "claims",
        sa.Column("call_id", sa.String(length=100), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("cancelled_at", sa.String(length=32), nullable=True),
        sa.Column("claimed_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_claims")),
    )
    op.create_index("ix_claims_owner", "claims", ["owner"])
    op.create_table(
        "doors",
        sa.Column("door", sa.String(length=64), nullable=False),
        sa.Column("host", sa.String(length=64), nullable=True),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("seen_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("door", name=op.f("pk_doors")),
    )
    op.create_table(
        "catalog_state",
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("slot", name=op.f("pk_catalog_state")),
    )
    op.execute("INSERT INTO catalog_state (slot, number) VALUES (0, 0)")
    # The database counts: nothing that changes a tool can forget to.
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"CREATE FUNCTION count_catalog_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {_COUNT}; RETURN NULL; END'")
        for table in _WATCHED:
            changes = " OR ".join(_CHANGES)
            op.execute(f"CREATE TRIGGER {table}_counted AFTER {changes} ON {table} EXECUTE FUNCTION count_catalog_change()")
        for table, columns in _TEXTS.items():
            for column, length in columns.items():
                op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR({length}) COLLATE "C"')
    else:
        for table in _WATCHED:
            for change in _CHANGES:
                op.execute(f"CREATE TRIGGER {table}_{change.lower()}_counted AFTER {change} ON {table} BEGIN {_COUNT}; END")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in _WATCHED:
            op.execute(f"DROP TRIGGER {table}_counted ON {table}")
        op.execute("DROP FUNCTION count_catalog_change()")
    else:
        for table in _WATCHED:
            for change in _CHANGES:
                op.execute(f"DROP TRIGGER {table}_{change.lower()}_counted")
    op.drop_table("catalog_state")
    op.drop_table("doors")
    op.drop_index("ix_claims_owner", "claims")
    op.drop_table("claims")
