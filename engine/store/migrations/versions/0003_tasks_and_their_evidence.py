"""Tasks that make tools, their logs, transcripts and ledger; the evidence of versions, and when each became the active one."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_OURS = sa.text(
    "SELECT table_name, column_name, character_maximum_length FROM information_schema.columns"
    " WHERE table_schema = current_schema() AND data_type = 'character varying' AND table_name = ANY(:tables)"
)
_TABLES = ("evidence", "messages", "model_turns", "task_notes", "tasks", "tool_outcomes", "tool_versions")


def upgrade() -> None:
    op.create_table(
        "evidence",
        sa.Column("tool_id", sa.String(length=128), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tool_id", "version", name=op.f("pk_evidence")),
    )
    op.create_table(
        "messages",
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("content", sa.Text(), nullable=True),
        sa.Column("file_id", sa.String(length=40), nullable=True),
        sa.PrimaryKeyConstraint("task_id", "position", name=op.f("pk_messages")),
    )
    op.create_table(
        "model_turns",
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("asked_model", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("stop_reason", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("ended_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("task_id", "key", name=op.f("pk_model_turns")),
    )
    op.create_table(
        "task_notes",
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("task_id", "position", name=op.f("pk_task_notes")),
    )
    op.create_table(
        "tool_outcomes",
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("content", sa.Text(), nullable=True),
        sa.Column("file_id", sa.String(length=40), nullable=True),
        sa.PrimaryKeyConstraint("task_id", "key", name=op.f("pk_tool_outcomes")),
    )
    _make_tasks()
    for table, columns, unique in (
        ("messages", ("task_id", "key"), True),
        ("task_notes", ("task_id", "key"), True),
        ("tasks", ("created_at",), False),
        ("tasks", ("ended_at",), False),
        ("tasks", ("tool_id",), False),
    ):
        op.create_index(f"ix_{table}_{'_'.join(columns)}", table, [*columns], unique=unique)
    with op.batch_alter_table("tool_versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("activated_at", sa.String(length=32), nullable=True))

    # What was registered became the active one by that; of others only the one that is active now is known to have been.
    op.execute(
        "UPDATE tool_versions SET activated_at = created_at WHERE EXISTS (SELECT 1 FROM tools WHERE tools.tool_id = tool_versions.tool_id"
        " AND (tools.origin = 'registered' OR tools.active_version = tool_versions.version))"
    )
    _collate("C")


def _make_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("tool_id", sa.String(length=128), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("request_key", sa.String(length=64), nullable=False),
        sa.Column("tool_ids", sa.Text(), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.Column("stages", sa.Text(), nullable=False),
        sa.Column("progress", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("unpriced_turns", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("asked_at", sa.String(length=32), nullable=True),
        sa.Column("slot_at", sa.String(length=32), nullable=True),
        sa.Column("started_at", sa.String(length=32), nullable=True),
        sa.Column("ended_at", sa.String(length=32), nullable=True),
        sa.Column("host", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("task_id", name=op.f("pk_tasks")),
    )


def downgrade() -> None:
    with op.batch_alter_table("tool_versions", schema=None) as batch_op:
        batch_op.drop_column("activated_at")

    for table in ("tasks", "task_notes", "tool_outcomes", "model_turns", "messages", "evidence"):
        op.drop_table(table)


def _collate(collation: str) -> None:
    """On PostgreSQL ids and times are to be compared by their bytes, as on SQLite, whatever language the database was made for."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    for table, column, length in connection.execute(_OURS, {"tables": list(_TABLES)}).all():
        op.execute(f'ALTER TABLE "{table}" ALTER COLUMN "{column}" TYPE VARCHAR({length}) COLLATE "{collation}"')
